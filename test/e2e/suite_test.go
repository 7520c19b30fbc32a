// Package e2e runs the real programs together: kube-apiserver and etcd, the
// controller, agents, tmux and the demo harness.
package e2e

import (
	"context"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/devcluster"
)

var (
	root       string
	binDir     string
	assets     string
	kubectlBin string
	suiteDir   string
	cluster    *devcluster.Cluster
	k8s        client.Client
	hub        *process
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the real programs together")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	findPrograms()
	// Short, because a tmux socket's path is at most 107 bytes.
	suiteDir, err = os.MkdirTemp("/tmp", "loop-e2e-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(nothingLeft)
	DeferCleanup(os.RemoveAll, suiteDir)
	startCluster(ctx)
	hub = startProcess(filepath.Join(binDir, "controller"), []string{"KUBECONFIG=" + kubeconfigFor("theloop-controller")},
		// One that lost its lease in an outage would end, to be started again by a Deployment.
		"--leader-elect=false")
	DeferCleanup(func() { hub.stop() })
}, NodeTimeout(5*time.Minute))

// nothingLeft looks, when all is over, for processes that still know the suite's
// directory: a terminal server, a harness, a control plane.
func nothingLeft() {
	Eventually(func() (left []string) {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err == nil && strings.Contains(string(b), suiteDir) {
				left = append(left, strings.ReplaceAll(string(b), "\x00", " "))
			}
		}
		return left
	}, 10*time.Second).Should(BeEmpty(), "processes are left")
}

// findPrograms uses what make built, and builds what was not.
func findPrograms() {
	binDir = os.Getenv("THE_LOOP_BIN")
	if binDir == "" {
		binDir = filepath.Join(GinkgoT().TempDir(), "bin")
		for _, pkg := range []string{"./cmd/the-loop", "./cmd/agent", "./cmd/controller", "./cmd/loop-shim", "./test/fakeharness"} {
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
	kubectlBin = filepath.Join(assets, "kubectl")
	if p, err := exec.LookPath("kubectl"); err == nil {
		kubectlBin = p
	}
}

func startCluster(ctx context.Context) {
	var err error
	cluster, err = devcluster.Start(ctx, devcluster.Options{
		Dir: filepath.Join(suiteDir, "cp"), BinDir: assets, NoFsync: true, RequestLog: filepath.Join(suiteDir, "requests.log"),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
	_, err = envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config/crd/bases")}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
	for _, f := range []string{"00_namespace.yaml", "controller_role.yaml", "agent_role.yaml", "bindings.yaml", "people.yaml"} {
		kubectl("apply", "-f", filepath.Join(root, "config/rbac", f))
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	cfg := cluster.Config()
	cfg.QPS = -1
	k8s, err = client.New(cfg, client.Options{Scheme: s})
	Expect(err).NotTo(HaveOccurred())
}

// kubectl runs kubectl as an administrator and returns what it printed.
func kubectl(args ...string) string {
	GinkgoHelper()
	out, err := kubectlTry(args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

func kubectlTry(args ...string) (string, error) {
	cmd := exec.Command(kubectlBin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubeconfigFor writes a kubeconfig for one identity.
func kubeconfigFor(user string, groups ...string) string {
	GinkgoHelper()
	cfg, err := cluster.ConfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(suiteDir, strings.NewReplacer(":", "_", "/", "_").Replace(user)+".kubeconfig")
	Expect(clientcmd.WriteToFile(kubeconfig(cfg), path)).To(Succeed())
	return path
}

func kubeconfig(cfg *rest.Config) clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	return *c
}

// process is one of our programs.
type process struct {
	session *gexec.Session
}

func startProcess(path string, env []string, args ...string) *process {
	GinkgoHelper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	s, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	return &process{s}
}

func (p *process) pid() int { return p.session.Command.Process.Pid }

// stop ends the program the way a person does, and insists on 5 seconds.
func (p *process) stop() {
	GinkgoHelper()
	p.session.Interrupt()
	Eventually(p.session, 10*time.Second).Should(gexec.Exit())
}

// kill ends it with SIGKILL.
func (p *process) kill() {
	GinkgoHelper()
	p.session.Kill()
	Eventually(p.session, 10*time.Second).Should(gexec.Exit())
}
