package devcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

var _ = Describe("A start that is refused", func() {
	// refused expects an error of Start which names what, and nothing left running.
	refused := func(o Options, what ...string) {
		GinkgoHelper()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		c, err := Start(ctx, o)
		Expect(c).To(BeNil())
		var all []types.GomegaMatcher
		for _, w := range what {
			all = append(all, ContainSubstring(w))
		}
		Expect(err).To(MatchError(And(all...)))
		if filepath.IsAbs(o.Dir) {
			Expect(Processes(o.Dir)).To(BeEmpty())
		}
	}

	It("leaves no directory behind when the options are wrong", func() {
		empty := GinkgoT().TempDir()
		plain := GinkgoT().TempDir()
		script(plain, etcdName, "")
		Expect(os.WriteFile(filepath.Join(plain, apiserverName), []byte("x"), 0o644)).To(Succeed())
		for _, tc := range []struct {
			change func(*Options)
			what   []string
		}{
			{func(o *Options) { o.Dir = "state" }, []string{`Dir "state" is not an absolute path`}},
			{func(o *Options) { o.Dir = "" }, []string{`Dir "" is not an absolute path`}},
			{func(o *Options) { o.BinDir = "" }, []string{`BinDir "" is not an absolute path`}},
			{func(o *Options) { o.BinDir = empty }, []string{"etcd of the control plane is missing from " + empty, "make controlplane"}},
			{func(o *Options) { o.BinDir = plain }, []string{"kube-apiserver is not a program", "make controlplane"}},
			{func(o *Options) { o.RequestLog = "log" }, []string{`RequestLog "log" is not an absolute path`}},
			{func(o *Options) { o.RequestLog = "/nowhere/at/all/log" }, []string{"/nowhere/at/all", "make its directory"}},
			{func(o *Options) { o.EtcdPort = 70000 }, []string{"70000 is not a TCP port"}},
			{func(o *Options) { o.EtcdPort, o.APIServerPort = 2379, 2379 }, []string{"cannot share port 2379"}},
		} {
			o := testOptions(newDir())
			tc.change(&o)
			refused(o, tc.what...)
			if filepath.IsAbs(o.Dir) {
				Expect(o.Dir).NotTo(BeAnExistingFile())
			}
		}
	})

	It("names a state directory that cannot be written", func() {
		file := filepath.Join(GinkgoT().TempDir(), "file")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		refused(testOptions(filepath.Join(file, "state")), filepath.Join(file, "state"), "not a directory", "choose a directory")
	})

	It("names the port that is taken, by whom, and leaves the record alone", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = l.Close() }()
		port := l.Addr().(*net.TCPAddr).Port
		taken := fmt.Sprintf("port %d of %%s on 127.0.0.1 is taken by process %d (", port, os.Getpid())

		o := testOptions(newDir())
		o.APIServerPort = port
		refused(o, fmt.Sprintf(taken, "the API server"), "choose another port")
		o = testOptions(newDir())
		o.EtcdPort = port
		refused(o, fmt.Sprintf(taken, "etcd"))

		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		Expect(writePorts(d, ports{Etcd: 2, APIServer: port})).To(Succeed())
		recorded, err := os.ReadFile(d.ports())
		Expect(err).NotTo(HaveOccurred())
		o = testOptions(string(d))
		o.EtcdPort, err = freePort(port)
		Expect(err).NotTo(HaveOccurred())
		refused(o, fmt.Sprintf(taken, "the API server"), "kubeconfigs", "remove "+d.ports())
		Expect(os.ReadFile(d.ports())).To(Equal(recorded))
	})

	It("says what is wrong with damaged files and how to get past it", func() {
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		Expect(os.WriteFile(d.ports(), []byte("{"), 0o600)).To(Succeed())
		refused(testOptions(string(d)), d.ports(), "remove the file")
		Expect(os.WriteFile(d.pki("ca.crt"), []byte("nonsense"), 0o600)).To(Succeed())
		refused(testOptions(string(d)), "ca.crt", "remove "+d.pki(""))
	})

	It("quotes the last words of a child that ended at once", func() {
		bin := GinkgoT().TempDir()
		script(bin, etcdName, `echo "no, not today" >&2; exit 7`)
		script(bin, apiserverName, "")
		o := testOptions(newDir())
		o.BinDir = bin
		refused(o, "etcd (pid ", "exit status 7", "etcd.log", "\n    no, not today")
	})

	It("quotes the API server about an argument that it does not know", func() {
		o := testOptions(newDir())
		o.ExtraAPIServerArgs = []string{"--no-such-flag=1"}
		refused(o, "kube-apiserver (pid ", "exit status 1", "unknown flag: --no-such-flag")
	})

	It("gives up at the deadline and says what it waited for", func() {
		bin := GinkgoT().TempDir()
		script(bin, etcdName, `echo thinking; exec sleep 60`)
		script(bin, apiserverName, "")
		o := testOptions(newDir())
		o.BinDir = bin
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := Start(ctx, o)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(err).To(MatchError(And(ContainSubstring("etcd was not ready after"), ContainSubstring("connection refused"),
			ContainSubstring("\n    thinking"))))
		Expect(time.Since(begin)).To(BeNumerically("<", 3*time.Second))
		Expect(Processes(o.Dir)).To(BeEmpty())
	})

	It("leaves the directory free for the next one", func(ctx SpecContext) {
		o := testOptions(newDir())
		cancelled, cancel := context.WithCancel(ctx)
		o.Log = func(format string, _ ...any) {
			if strings.Contains(format, "starting kube-apiserver") {
				cancel()
			}
		}
		_, err := Start(cancelled, o)
		Expect(err).To(MatchError(context.Canceled))
		Expect(Processes(o.Dir)).To(BeEmpty())
		lock, err := lockDir(ctx, layout(o.Dir))
		Expect(err).NotTo(HaveOccurred())
		lock.Release()
	}, NodeTimeout(time.Minute))

	It("tries other ports when it loses a free one to another process", func() {
		bin := GinkgoT().TempDir()
		script(bin, etcdName, `if mkdir "$0.lost" 2>/dev/null; then echo "listen tcp 127.0.0.1:1: bind: address already in use" >&2; exit 1; fi
exec `+filepath.Join(binDir, etcdName)+` "$@"`)
		Expect(os.Symlink(filepath.Join(binDir, apiserverName), filepath.Join(bin, apiserverName))).To(Succeed())
		o := testOptions(newDir())
		o.BinDir = bin
		start(o)
		Expect(filepath.Join(bin, etcdName+".lost")).To(BeADirectory())
	})
})
