package devcluster

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// contextName is the name of the context, the cluster and the user.
const contextName = "the-loop"

func serverURL(port int) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// writeKubeconfig writes the admin's kubeconfig unless it is there already.
func writeKubeconfig(d layout, p *pki, port int) error {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[contextName] = &clientcmdapi.Cluster{Server: serverURL(port), CertificateAuthorityData: p.ca.certPEM}
	cfg.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: p.admin.cert, ClientKeyData: p.admin.key}
	cfg.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: "default"}
	cfg.CurrentContext = contextName
	want, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("cannot encode the kubeconfig: %w", err)
	}
	have, err := os.ReadFile(d.kubeconfig())
	if err == nil && bytes.Equal(have, want) {
		if err := os.Chmod(d.kubeconfig(), 0o600); err != nil {
			return d.explain(err)
		}
		return nil
	}
	if err := durable.Write(d.kubeconfig(), want); err != nil {
		return d.explain(err)
	}
	return nil
}

// restConfig is access to the API server with one client certificate.
func restConfig(ca *authority, pair keyPair, port int) *rest.Config {
	return &rest.Config{
		Host: serverURL(port),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   bytes.Clone(ca.certPEM),
			CertData: bytes.Clone(pair.cert),
			KeyData:  bytes.Clone(pair.key),
		},
	}
}

// Config returns access as the admin (group system:masters). Each call returns a
// new copy, with client-go's default rate limits.
func (c *Cluster) Config() *rest.Config {
	return restConfig(c.pki.ca, c.pki.admin, c.ports.APIServer)
}

// Kubeconfig returns the absolute path of the admin's kubeconfig: mode 0600,
// certificates embedded, context, cluster and user named the-loop.
func (c *Cluster) Kubeconfig() string { return c.dirs.kubeconfig() }

// ConfigFor returns access as a user in the given groups, by a client
// certificate that is good for two years. RBAC decides what it may do: nothing,
// until a binding names the user or a group.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	if user == "" {
		return nil, errors.New("a client certificate needs a user name: give one")
	}
	pair, err := c.pki.ca.issue(leaf{user: user, groups: groups}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client certificate for %q: %w", user, err)
	}
	return restConfig(c.pki.ca, pair, c.ports.APIServer), nil
}
