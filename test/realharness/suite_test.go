// Package realharness runs the real programs together with the real Claude Code,
// offline: its model is test/fakemodel. Nothing of the user who runs the tests is
// read or written.
package realharness

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/test/fakemodel/server"
)

var (
	root, binDir, assets string
	suiteDir             string
	claude               string
	cluster              *devcluster.Cluster
	k8s                  client.Client
	model                *server.Model
	modelURL             string
)

func TestRealHarness(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the real programs with the real Claude Code")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	claude, err = claudeBinary(ctx)
	if errors.Is(err, errUnreachable) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	findPrograms()
	// Short, because a tmux socket's path is at most 107 bytes.
	suiteDir, err = os.MkdirTemp("/tmp", "loop-real-")
	Expect(err).NotTo(HaveOccurred())
	suiteDir, err = filepath.EvalSymlinks(suiteDir)
	Expect(err).NotTo(HaveOccurred())
	// A harness that was just ended may still write for a moment.
	DeferCleanup(func() { Eventually(func() error { return os.RemoveAll(suiteDir) }).Should(Succeed()) })
	startModel()
	startCluster(ctx)
	hub := start(filepath.Join(binDir, "controller"), []string{"KUBECONFIG=" + kubeconfigFor("theloop-controller")}, "--leader-elect=false")
	DeferCleanup(func() {
		hub.Interrupt()
		Eventually(hub).Should(gexec.Exit())
	})
}, NodeTimeout(10*time.Minute))

// startModel serves the fake model on loopback.
func startModel() {
	GinkgoHelper()
	log, err := os.Create(filepath.Join(suiteDir, "model.jsonl"))
	Expect(err).NotTo(HaveOccurred())
	model = server.New()
	model.Log = log
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	modelURL = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	srv := model.HTTP(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	DeferCleanup(func() {
		cancel()
		Expect(srv.Close()).To(Succeed())
		<-served
		Expect(log.Close()).To(Succeed())
	})
}

// findPrograms uses what make built, and builds what was not.
func findPrograms() {
	GinkgoHelper()
	binDir = os.Getenv("THE_LOOP_BIN")
	if binDir == "" {
		binDir = filepath.Join(GinkgoT().TempDir(), "bin")
		for _, pkg := range []string{"./cmd/agent", "./cmd/controller", "./cmd/loop-shim"} {
			cmd := exec.Command("go", "build", "-o", binDir+"/", pkg)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
	}
	assets = os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		out, err := exec.Command("go", "run", "-C", filepath.Join(root, "hack/controlplane"), ".", "-print-dir").Output()
		Expect(err).NotTo(HaveOccurred(), "run make controlplane")
		assets = strings.TrimSpace(string(out))
	}
}

func startCluster(ctx context.Context) {
	GinkgoHelper()
	var err error
	cluster, err = devcluster.Start(ctx, devcluster.Options{Dir: filepath.Join(suiteDir, "cp"), BinDir: assets, NoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
	_, err = envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config/crd/bases")}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
	kubectl := filepath.Join(assets, "kubectl")
	if p, err := exec.LookPath("kubectl"); err == nil {
		kubectl = p
	}
	cmd := exec.Command(kubectl, "apply", "-f", filepath.Join(root, "config/rbac"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	s := runtime.NewScheme()
	utilruntime.Must(api.AddToScheme(s))
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	cfg := cluster.Config()
	cfg.QPS = -1
	k8s, err = client.New(cfg, client.Options{Scheme: s})
	Expect(err).NotTo(HaveOccurred())
}

// kubeconfigFor writes a kubeconfig for one identity.
func kubeconfigFor(user string, groups ...string) string {
	GinkgoHelper()
	cfg, err := cluster.ConfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(suiteDir, strings.ReplaceAll(user, ":", "_")+".kubeconfig")
	Expect(clientcmd.WriteToFile(*c, path)).To(Succeed())
	return path
}

// start starts one of our programs.
func start(path string, env []string, args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	s, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// namespace makes a namespace.
func namespace(name string) {
	GinkgoHelper()
	n := &corev1.Namespace{}
	n.Name = name
	Expect(k8s.Create(context.Background(), n)).To(Succeed())
}
