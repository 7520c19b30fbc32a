package devcluster

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The keys", func() {
	var (
		d   layout
		now = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	)
	BeforeEach(func() {
		d = layout(newDir())
		Expect(d.make()).To(Succeed())
	})
	load := func(at time.Time) {
		GinkgoHelper()
		_, err := loadPKI(d, at)
		Expect(err).NotTo(HaveOccurred())
	}
	// files maps the names in the pki directory to their contents.
	files := func() map[string]string {
		GinkgoHelper()
		out := map[string]string{}
		entries, err := os.ReadDir(d.pki(""))
		Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			b, err := os.ReadFile(d.pki(e.Name()))
			Expect(err).NotTo(HaveOccurred())
			out[e.Name()] = string(b)
		}
		return out
	}
	// changed lists the files that differ.
	changed := func(before, after map[string]string) []string {
		var out []string
		for name := range after {
			if before[name] != after[name] {
				out = append(out, name)
			}
		}
		return out
	}
	leaves := []string{
		"admin.crt", "admin.key", "apiserver.crt", "apiserver.key",
		"etcd-client.crt", "etcd-client.key", "etcd-server.crt", "etcd-server.key",
	}

	It("are used again until half of a certificate's life is over", func() {
		load(now)
		first := files()
		Expect(first).To(HaveLen(len(leaves) + 5))
		load(now.Add(leafLifetime/2 - time.Hour))
		Expect(changed(first, files())).To(BeEmpty())
		load(now.Add(leafLifetime/2 + time.Hour))
		Expect(changed(first, files())).To(ConsistOf(leaves))
	})

	It("are all replaced when an authority is about to expire", func() {
		load(now)
		first := files()
		load(now.Add(caLifetime - leafLifetime + time.Hour))
		Expect(changed(first, files())).To(ConsistOf(append(leaves, "ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key")))
	})

	It("are mended where a crash or a person left half of them", func() {
		load(now)
		first := files()
		Expect(os.Remove(d.pki("admin.crt"))).To(Succeed())
		Expect(os.WriteFile(d.pki("apiserver.crt"), []byte(first["admin.crt"]), 0o600)).To(Succeed())
		Expect(os.WriteFile(d.pki("etcd-client.key"), nil, 0o600)).To(Succeed())
		load(now)
		Expect(changed(first, files())).To(ConsistOf("admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "etcd-client.crt", "etcd-client.key"))
	})

	It("are refused, not replaced, where that would lock somebody out", func() {
		load(now)
		first := files()
		for name, text := range map[string]string{"ca.key": first["etcd-ca.key"], "etcd-ca.crt": "x", serviceAccountKey: "x"} {
			Expect(os.WriteFile(d.pki(name), []byte(text), 0o600)).To(Succeed())
			_, err := loadPKI(d, now)
			Expect(err).To(MatchError(And(ContainSubstring(name), ContainSubstring("remove "+d.pki("")))))
			Expect(os.ReadFile(d.pki(name))).To(BeEquivalentTo(text))
			Expect(os.WriteFile(d.pki(name), []byte(first[name]), 0o600)).To(Succeed())
		}
		Expect(os.Remove(d.pki("ca.key"))).To(Succeed())
		_, err := loadPKI(d, now)
		Expect(err).To(MatchError(ContainSubstring("ca.key")))
	})

	It("serve 127.0.0.1 only and sign nothing else", func() {
		load(now)
		block, _ := pem.Decode([]byte(files()["apiserver.crt"]))
		cert, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(cert.VerifyHostname("127.0.0.1")).To(Succeed())
		Expect(cert.VerifyHostname("localhost")).To(Succeed())
		Expect(cert.VerifyHostname("192.0.2.1")).NotTo(Succeed())
		Expect(cert.IsCA).To(BeFalse())
	})
})

var _ = Describe("The ports", func() {
	It("are chosen below those of outgoing connections", func() {
		high := firstOutgoingPort()
		if high <= lowestPort {
			Skip("this kernel uses all ports for outgoing connections")
		}
		for range 20 {
			port, err := freePort(0)
			Expect(err).NotTo(HaveOccurred())
			Expect(port).To(And(BeNumerically(">=", lowestPort), BeNumerically("<", high)))
		}
	})

	It("stay those of the record unless others are asked for", func() {
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		first, fresh, err := choosePorts(d, Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(fresh).To(BeTrue())
		Expect(writePorts(d, first)).To(Succeed())
		again, fresh, err := choosePorts(d, Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(fresh).To(BeFalse())
		Expect(again).To(Equal(first))
		other, err := freePort(0)
		Expect(err).NotTo(HaveOccurred())
		moved, _, err := choosePorts(d, Options{APIServerPort: other})
		Expect(err).NotTo(HaveOccurred())
		Expect(moved).To(Equal(ports{Etcd: first.Etcd, APIServer: other}))
	})
})

var _ = Describe("The logs", func() {
	It("keep the previous run", func() {
		path := filepath.Join(GinkgoT().TempDir(), "x.log")
		for _, text := range []string{"one", "two", "three"} {
			f, err := openLog(path)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.WriteString(text)
			Expect(err).NotTo(HaveOccurred())
			Expect(f.Close()).To(Succeed())
		}
		Expect(os.ReadFile(path)).To(BeEquivalentTo("three"))
		Expect(os.ReadFile(path + ".1")).To(BeEquivalentTo("two"))
	})

	It("are quoted briefly and safely", func() {
		path := filepath.Join(GinkgoT().TempDir(), "x.log")
		Expect(logTail(path)).To(Equal("    (nothing)"))
		text := strings.Repeat("old\n", 10000) + "\n\x1b[31mred\x07\tcell\xff\n" + strings.Repeat("ä", 500) + "\n\n"
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		lines := strings.Split(logTail(path), "\n")
		Expect(lines).To(HaveLen(tailLines))
		Expect(lines[tailLines-2]).To(Equal("    [31mred cell"))
		Expect(lines[tailLines-1]).To(Equal("    " + strings.Repeat("ä", tailWidth) + "..."))
	})
})

var _ = Describe("The children's environment", func() {
	It("has neither flags of etcd nor anybody's tokens", func() {
		Expect(childEnv([]string{"PATH=/bin", "ETCD_NAME=x", "GITHUB_TOKEN=s", "GOMAXPROCS=2", "PATHS=y", "KUBECONFIG=k"})).
			To(Equal([]string{"PATH=/bin", "GOMAXPROCS=2"}))
	})
})

var _ = Describe("The request log", func() {
	It("is read up to the line that is being written", func() {
		path := filepath.Join(GinkgoT().TempDir(), "log")
		Expect(ReadRequestLog(path)).To(BeEmpty())
		line := `{"verb":"patch","user":{"username":"hal"},"objectRef":{"apiGroup":"theloop.dev","resource":"sessionhosts",` +
			`"subresource":"status","namespace":"n","name":"x"},"responseStatus":{"code":200},"requestURI":"/apis/y",` +
			`"userAgent":"agent/1","requestReceivedTimestamp":"2026-11-29T22:52:46.533281Z"}` + "\n"
		Expect(os.WriteFile(path, []byte(line+line[:20]), 0o600)).To(Succeed())
		want := Request{
			User: "hal", Agent: "agent/1", Verb: "patch", URI: "/apis/y", Group: "theloop.dev", Resource: "sessionhosts",
			Subresource: "status", Namespace: "n", Name: "x", Code: 200, Time: time.Date(2026, 11, 29, 22, 52, 46, 533281000, time.UTC),
		}
		Expect(ReadRequestLog(path)).To(Equal([]Request{want}))
		Expect(want.IsWrite()).To(BeTrue())
		Expect(Request{Verb: "watch"}.IsWrite()).To(BeFalse())
		Expect(os.WriteFile(path, []byte("nonsense\n"), 0o600)).To(Succeed())
		_, err := ReadRequestLog(path)
		Expect(err).To(MatchError(ContainSubstring("line 1 of the request log")))
	})
})
