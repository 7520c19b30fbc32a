//go:build linux

package webterminal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/webterminal"
)

var _ = Describe("the address of a session", func() {
	DescribeTable("is exact", func(text, want string) {
		ref, err := webterminal.ParseRef(text)
		if want == "" {
			Expect(err).To(MatchError(And(ContainSubstring("names no session"), ContainSubstring("KIND/NAMESPACE/NAME"))))
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(ref.Path()).To(Equal("/sessions/" + want))
	},
		Entry("a standing session", "standingsession/default/hello", "standingsession/default/hello"),
		Entry("a work item's", "workitemsession/team-a/github-octo-repo-1", "workitemsession/team-a/github-octo-repo-1"),
		Entry("its twin, which begins alike", "workitemsession/team-a/github-octo-repo-12", "workitemsession/team-a/github-octo-repo-12"),
		Entry("a dot in a name", "workitemsession/default/github-octo-next.js-1", "workitemsession/default/github-octo-next.js-1"),
		Entry("nothing", "", ""),
		Entry("no name", "standingsession/default/", ""),
		Entry("no namespace", "standingsession//hello", ""),
		Entry("another kind", "sessionmessage/default/hello", ""),
		Entry("the kind as in a manifest", "StandingSession/default/hello", ""),
		Entry("one part too many", "standingsession/default/hello/x", ""),
		Entry("a slash at the end", "standingsession/default/hello/", ""),
		Entry("upper case", "standingsession/default/Hello", ""),
		Entry("up and away", "standingsession/../hello", ""),
		Entry("escaped characters", "standingsession/default/hell%6F", ""),
		Entry("an exact target of tmux", "standingsession/default/=hello", ""),
		Entry("a line end", "standingsession/default/hello\n", ""),
		Entry("an end that is none", "standingsession/default/hello-", ""),
		Entry("too long", "standingsession/default/"+strings.Repeat("a", 254), ""),
	)
})

var _ = Describe("Options", func() {
	complete := func(change func(*webterminal.Options)) (webterminal.Options, error) {
		o := webterminal.Options{Enabled: true}
		change(&o)
		err := o.Complete()
		return o, err
	}

	It("is off by default, and on 127.0.0.1, read-only and built in when it is on", func() {
		var off webterminal.Options
		Expect(off.Complete()).To(Succeed())
		Expect(off.Enabled).To(BeFalse())
		off.Host = "0.0.0.0"
		Expect(off.Complete()).NotTo(Succeed(), "what is wrong is refused before it is enabled")
		on, err := complete(func(*webterminal.Options) {})
		Expect(err).NotTo(HaveOccurred())
		Expect(on).To(And(HaveField("Provider", "builtin"), HaveField("Host", "127.0.0.1"), HaveField("Writable", false), HaveField("Idle", 30*time.Minute), HaveField("MaxClients", 16)))
	})

	DescribeTable("refuses what cannot be served, with what is allowed", func(change func(*webterminal.Options), want string) {
		_, err := complete(change)
		if want == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("another provider", func(o *webterminal.Options) { o.Provider = "gotty" }, "choose builtin or ttyd"),
		Entry("a name as address", func(o *webterminal.Options) { o.Host = "example.org" }, "give an IP address such as 127.0.0.1, or localhost"),
		Entry("a port that is none", func(o *webterminal.Options) { o.Port = 65536 }, "from 1 to 65535, or 0"),
		Entry("a negative port", func(o *webterminal.Options) { o.Port = -1 }, "from 1 to 65535, or 0"),
		Entry("no time", func(o *webterminal.Options) { o.Idle = -time.Second }, "a time from 1s to 168h"),
		Entry("too many", func(o *webterminal.Options) { o.MaxClients = 1001 }, "a number from 1 to 1000"),
		Entry("U02: all addresses", func(o *webterminal.Options) { o.Host = "0.0.0.0" }, "--web-terminal-exposed"),
		Entry("U02: another address of the machine", func(o *webterminal.Options) { o.Host = "192.0.2.1" }, "--web-terminal-exposed"),
		Entry("U02: all addresses, exposed, under no name", func(o *webterminal.Options) { o.Host, o.Exposed = "::", true }, "--web-terminal-allowed-hosts"),
		Entry("an exposed address", func(o *webterminal.Options) { o.Host, o.Exposed = "192.0.2.1", true }, ""),
		Entry("all addresses, exposed, under a name", func(o *webterminal.Options) { o.Host, o.Exposed, o.AllowedHosts = "::", true, []string{"build7:7681"} }, ""),
		Entry("localhost", func(o *webterminal.Options) { o.Host = "localhost" }, ""),
		Entry("the other loopback address", func(o *webterminal.Options) { o.Host = "::1" }, ""),
		Entry("a wildcard as name", func(o *webterminal.Options) { o.AllowedHosts = []string{"*.example.org"} }, "wildcards and URLs are none"),
		Entry("a URL as name", func(o *webterminal.Options) { o.AllowedHosts = []string{"https://example.org"} }, "wildcards and URLs are none"),
	)
})

var _ = Describe("the token", func() {
	It("is kept from others, and refused when it was not", func() {
		s := newStage()
		file := filepath.Join(s.web.Dir, "token")
		info, err := os.Stat(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		dir, err := os.Stat(s.web.Dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(dir.Mode().Perm()).To(Equal(os.FileMode(0o700)))
		before := s.token()
		Expect(before).To(HaveLen(43))
		s.stop()

		again := &webterminal.Server{Options: s.web.Options, Dir: s.web.Dir}
		Expect(os.Chmod(file, 0o640)).To(Succeed())
		Expect(again.Open()).To(MatchError(ContainSubstring("nobody else can read")))
		Expect(os.Chmod(file, 0o600)).To(Succeed())
		Expect(os.WriteFile(file, []byte("short\n"), 0o600)).To(Succeed())
		Expect(again.Open()).To(MatchError(ContainSubstring("damaged")))
		Expect(os.Remove(file)).To(Succeed())
		Expect(os.Symlink("/dev/null", file)).To(Succeed())
		Expect(again.Open()).To(MatchError(ContainSubstring("a plain file")))
	})
})

var _ = Describe("the page's terminal emulator", func() {
	It("is xterm.js as it was released, with its licence", func() {
		dir := filepath.Join("assets", "xterm")
		sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		Expect(err).NotTo(HaveOccurred())
		names := map[string]bool{"SHA256SUMS": true}
		for line := range strings.Lines(string(sums)) {
			f := strings.Fields(line)
			b, err := os.ReadFile(filepath.Join(dir, f[1]))
			Expect(err).NotTo(HaveOccurred())
			sum := sha256.Sum256(b)
			Expect(hex.EncodeToString(sum[:])).To(Equal(f[0]), f[1])
			names[f[1]] = true
		}
		Expect(names).To(HaveKey("LICENSE"))
		all, err := os.ReadDir(dir)
		Expect(err).NotTo(HaveOccurred())
		for _, e := range all {
			Expect(names).To(HaveKey(e.Name()))
		}
	})
})
