package v1alpha1_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

const configDir = "../../config"

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "api/v1alpha1")
}

// One API server serves the whole suite, also when it is run by several
// processes: the first one owns it.
var (
	controlPlane *envtest.Environment
	leaksBefore  goleak.Option
)

// What each process has of its own.
var (
	kubeconfig string
	restConfig *rest.Config
	transport  *http.Client
	k8s        client.Client
	kubectlBin string
	kubectlDir string
)

var _ = SynchronizedBeforeSuite(func() []byte {
	leaksBefore = goleak.IgnoreCurrent()
	assets := assetsDir()
	controlPlane = &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(configDir, "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	_, err := controlPlane.Start()
	Expect(err).NotTo(HaveOccurred())
	admin, err := controlPlane.AddUser(envtest.User{Name: "test-admin", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	file, err := admin.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	return file
}, func(file []byte) {
	dir := GinkgoT().TempDir()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	Expect(os.WriteFile(kubeconfig, file, 0o600)).To(Succeed())
	kubectlDir = filepath.Join(dir, "kubectl")

	var err error
	restConfig, err = clientcmd.RESTConfigFromKubeConfig(file)
	Expect(err).NotTo(HaveOccurred())
	restConfig.QPS = -1
	transport, err = rest.HTTPClientFor(restConfig)
	Expect(err).NotTo(HaveOccurred())

	Expect(api.AddToScheme(scheme.Scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.New(restConfig, client.Options{HTTPClient: transport})
	Expect(err).NotTo(HaveOccurred())
	kubectlBin = findKubectl()
})

var _ = SynchronizedAfterSuite(func() {
	if transport != nil {
		transport.CloseIdleConnections()
	}
}, func() {
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
	if leaksBefore != nil {
		const interceptor = "github.com/onsi/ginkgo/v2/internal.(*genericOutputInterceptor).ResumeIntercepting.func1"
		Eventually(func() error {
			return goleak.Find(leaksBefore, goleak.IgnoreAnyFunction(interceptor), goleak.IgnoreAnyFunction(interceptor+".1"))
		}).Should(Succeed())
	}
})

// assetsDir is the directory of kube-apiserver and etcd.
func assetsDir() string {
	GinkgoHelper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		cmd := exec.Command("go", "run", "-C", "../../hack/controlplane", ".", "-print-dir")
		out, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred(), "where are the binaries of the control plane? set KUBEBUILDER_ASSETS")
		dir = strings.TrimSpace(string(out))
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		Expect(filepath.Join(dir, name)).To(BeARegularFile(), "run `make controlplane` first")
	}
	return dir
}

// findKubectl is the kubectl on PATH, else the one that is built with the control
// plane.
func findKubectl() string {
	GinkgoHelper()
	if bin, err := exec.LookPath("kubectl"); err == nil {
		return bin
	}
	bin := filepath.Join(assetsDir(), "kubectl")
	Expect(bin).To(BeARegularFile(), "there is no kubectl on PATH: run `make controlplane` first")
	return bin
}

// kubectl runs kubectl and returns its output and what it complained of.
func kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	all := append([]string{"--kubeconfig", kubeconfig, "--cache-dir", kubectlDir}, args...)
	cmd := exec.CommandContext(ctx, kubectlBin, all...)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"HOME=" + kubectlDir, "PATH=" + os.Getenv("PATH")}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	GinkgoWriter.Printf("$ kubectl %s\n%s%s", strings.Join(args, " "), out.String(), errs.String())
	return out.String(), errs.String(), err
}

// kubectlOK is the output of a kubectl that must succeed.
func kubectlOK(ctx context.Context, args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), stderr)
	return stdout
}
