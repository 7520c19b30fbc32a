package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// StartCluster starts a control plane below dir, which has our kinds, roles and policies, and
// returns it with an administrator's client. It logs its requests for Requests, and
// stops at the end of tb.
func StartCluster(ctx context.Context, tb testing.TB, dir string) (*devcluster.Cluster, client.Client) {
	tb.Helper()
	cluster, err := devcluster.Start(ctx, devcluster.Options{
		Dir: filepath.Join(dir, "cp"), BinDir: ground.Assets(tb), NoFsync: true, RequestLog: requestLog(dir),
	})
	must(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			tb.Errorf("stopping the control plane: %v", err)
		}
	})
	config := filepath.Join(ground.Root(tb), "config")
	_, err = envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join(config, "crd", "bases")}, ErrorIfPathMissing: true})
	must(tb, err)
	apply := exec.CommandContext(ctx, ground.Kubectl(tb), "apply", "-f", filepath.Join(config, "rbac"), "-f", filepath.Join(config, "policy"))
	apply.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	if out, err := apply.CombinedOutput(); err != nil {
		tb.Fatalf("applying the roles and policies: %v\n%s", err, out)
	}
	s := runtime.NewScheme()
	must(tb, api.AddToScheme(s))
	must(tb, clientgoscheme.AddToScheme(s))
	cfg := cluster.Config()
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: s})
	must(tb, err)
	return cluster, c
}

func requestLog(dir string) string { return filepath.Join(dir, "requests.log") }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// kubeconfig is cfg as a file.
func kubeconfig(cfg *rest.Config) clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	return *c
}
