package devcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"

	certutil "k8s.io/client-go/util/cert"

	"github.com/theloop-dev/the-loop/internal/durable"
)

const (
	caLifetime = 20 * 365 * 24 * time.Hour
	// A leaf is renewed by the first start in the second half of its life, so
	// that a control plane can then run for a year without a restart.
	leafLifetime = 2 * 365 * 24 * time.Hour
	// clockSkew backdates certificates: machines that sleep wake up in the past.
	clockSkew = time.Hour
)

// keyPair is a certificate with its key, in PEM.
type keyPair struct {
	cert, key []byte
}

// authority signs certificates.
type authority struct {
	certPEM []byte
	cert    *x509.Certificate
	key     crypto.Signer
}

// leaf describes a certificate to be signed.
type leaf struct {
	user   string // common name
	groups []string
	server bool // for a server on 127.0.0.1, otherwise for a client
}

// pki is all the key material of one control plane.
type pki struct {
	ca, etcdCA                *authority
	admin, etcdClient         keyPair
	apiserverFile, etcdFile   string // base names of server certificates, without extension
	etcdClientFile, adminFile string
}

const (
	adminUser  = "the-loop"
	adminGroup = "system:masters"
)

// loadPKI reads Dir/pki and makes what is missing or about to expire.
func loadPKI(d layout, now time.Time) (*pki, error) {
	p := &pki{apiserverFile: "apiserver", etcdFile: "etcd-server", etcdClientFile: "etcd-client", adminFile: "admin"}
	var err error
	if p.ca, err = loadAuthority(d, "ca", "the-loop", now); err != nil {
		return nil, err
	}
	if p.etcdCA, err = loadAuthority(d, "etcd-ca", "the-loop-etcd", now); err != nil {
		return nil, err
	}
	for _, l := range []struct {
		name string
		ca   *authority
		leaf leaf
		out  *keyPair
	}{
		{p.apiserverFile, p.ca, leaf{user: "kube-apiserver", server: true}, nil},
		{p.adminFile, p.ca, leaf{user: adminUser, groups: []string{adminGroup}}, &p.admin},
		{p.etcdFile, p.etcdCA, leaf{user: "etcd", server: true}, nil},
		{p.etcdClientFile, p.etcdCA, leaf{user: "kube-apiserver"}, &p.etcdClient},
	} {
		pair, err := loadLeaf(d, l.name, l.ca, l.leaf, now)
		if err != nil {
			return nil, err
		}
		if l.out != nil {
			*l.out = pair
		}
	}
	return p, loadServiceAccountKey(d)
}

// loadAuthority reads or makes the authority in <name>.crt and <name>.key. An
// authority with less than a leaf's life left is replaced, and with it all it signed.
func loadAuthority(d layout, name, commonName string, now time.Time) (*authority, error) {
	certFile, keyFile := d.pki(name+".crt"), d.pki(name+".key")
	pair, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, explainPKI(d, err)
	}
	if pair.cert != nil {
		ca, err := parseAuthority(pair)
		if err != nil {
			return nil, explainPKI(d, fmt.Errorf("%s and %s: %w", certFile, keyFile, err))
		}
		if now.Add(leafLifetime).Before(ca.cert.NotAfter) {
			return ca, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if pair, err = sign(template, template, key, key); err != nil {
		return nil, err
	}
	if err := writePair(pair, certFile, keyFile); err != nil {
		return nil, d.explain(err)
	}
	return parseAuthority(pair)
}

// explainPKI is for key material that is there and cannot be used: making it
// anew would silently lock out every kubeconfig that was copied elsewhere.
func explainPKI(d layout, err error) error {
	return fmt.Errorf("cannot use the keys of the control plane: %w: restore them, or remove %s to have new ones made "+
		"(copies of the kubeconfig then stop working; the objects stay)", err, d.pki(""))
}

func parseAuthority(pair keyPair) (*authority, error) {
	both, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(both.Certificate[0])
	if err != nil {
		return nil, err
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok || !cert.IsCA {
		return nil, errors.New("this is no certificate authority")
	}
	return &authority{certPEM: pair.cert, cert: cert, key: key}, nil
}

// loadLeaf reads the certificate in <name>.crt and <name>.key, and makes it anew
// when it is absent, of another authority or purpose, or past half of its life.
func loadLeaf(d layout, name string, ca *authority, l leaf, now time.Time) (keyPair, error) {
	certFile, keyFile := d.pki(name+".crt"), d.pki(name+".key")
	pair, err := readPair(certFile, keyFile)
	if err == nil && pair.cert != nil && ca.good(pair, l, now) {
		return pair, nil
	}
	if pair, err = ca.issue(l, now); err != nil {
		return keyPair{}, err
	}
	if err := writePair(pair, certFile, keyFile); err != nil {
		return keyPair{}, d.explain(err)
	}
	return pair, nil
}

// good says whether pair is what issue would make and lasts long enough.
func (a *authority) good(pair keyPair, l leaf, now time.Time) bool {
	both, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return false
	}
	cert, err := x509.ParseCertificate(both.Certificate[0])
	if err != nil || !now.Add(leafLifetime/2).Before(cert.NotAfter) {
		return false
	}
	want := l.template(now)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: want.ExtKeyUsage})
	return err == nil && cert.Subject.CommonName == want.Subject.CommonName &&
		slices.Equal(cert.Subject.Organization, want.Subject.Organization) &&
		slices.Equal(cert.DNSNames, want.DNSNames) &&
		slices.EqualFunc(cert.IPAddresses, want.IPAddresses, net.IP.Equal)
}

func (l leaf) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.user, Organization: l.groups},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(leafLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if l.server {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		t.DNSNames = []string{"localhost"}
	}
	return t
}

// issue signs a new key for l.
func (a *authority) issue(l leaf, now time.Time) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot make a key: %w", err)
	}
	return sign(l.template(now), a.cert, key, a.key)
}

func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer) (keyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot make a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot sign a certificate for %s: %w", template.Subject, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot read back the certificate for %s: %w", template.Subject, err)
	}
	certPEM, err := certutil.EncodeCertificates(cert)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode the certificate for %s: %w", template.Subject, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode the key for %s: %w", template.Subject, err)
	}
	return keyPair{cert: certPEM, key: keyPEM}, nil
}

// readPair reads both files. Without a certificate there is no pair, and no
// error: the key is written first.
func readPair(certFile, keyFile string) (keyPair, error) {
	cert, err := os.ReadFile(certFile)
	if errors.Is(err, os.ErrNotExist) {
		return keyPair{}, nil
	}
	if err != nil {
		return keyPair{}, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: cert, key: key}, nil
}

// writePair replaces both files. Should only the key get written, the next load
// finds a pair that does not match; so an old certificate goes first.
func writePair(p keyPair, certFile, keyFile string) error {
	if err := os.Remove(certFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := durable.Write(keyFile, p.key); err != nil {
		return err
	}
	return durable.Write(certFile, p.cert)
}

const serviceAccountKey = "sa.key"

// loadServiceAccountKey makes the key that signs ServiceAccount tokens, once:
// a new one would void all tokens.
func loadServiceAccountKey(d layout) error {
	file := d.pki(serviceAccountKey)
	_, err := keyutil.PrivateKeyFromFile(file)
	if err == nil {
		return nil
	}
	if _, statErr := os.Lstat(file); !errors.Is(statErr, os.ErrNotExist) {
		return explainPKI(d, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("cannot encode the ServiceAccount key: %w", err)
	}
	if err := durable.Write(file, pem); err != nil {
		return d.explain(err)
	}
	return nil
}
