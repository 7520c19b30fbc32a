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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv/apiserver"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
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
	leaks        func() error
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
	leaks = ground.Leaks()
	controlPlane = apiserver.New(GinkgoTB())
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
	kubectlBin = ground.Kubectl(GinkgoTB())
})

var _ = SynchronizedAfterSuite(func() {
	if transport != nil {
		transport.CloseIdleConnections()
	}
}, func() {
	if controlPlane != nil {
		Expect(controlPlane.Stop()).To(Succeed())
	}
	if leaks != nil {
		Eventually(leaks).Should(Succeed())
	}
})

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
