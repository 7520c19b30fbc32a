//go:build linux

package tmux

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

var _ = Describe("New", func() {
	// fake is a tmux that only knows its version.
	fake := func(version string) string {
		return script(shortDir(), "tmux", "echo 'tmux "+version+"'\n")
	}

	It("N17: refuses every socket path that could not be the same one for everybody, and says what to do", func() {
		long := "/" + strings.Repeat("x", MaxSocketBytes)
		for path, says := range map[string]string{
			"":               "is empty: give an absolute path",
			"tmux.sock":      "is relative: give an absolute path",
			"/tmp/../tmp/s":  `give "/tmp/s"`,
			"/tmp/a\nb":      "control character",
			long:             "is 108 bytes long, but the limit is 107: choose a shorter directory",
			"/tmp/dir/sock/": `give "/tmp/dir/sock"`,
		} {
			_, err := New(Config{Socket: path, Binary: fake("3.4")})
			Expect(err).To(MatchError(ContainSubstring(says)), path)
		}
		_, err := New(Config{Socket: long[:MaxSocketBytes], Binary: fake("3.4")})
		Expect(err).NotTo(HaveOccurred())
	})

	It("T26: names the command that installs a missing tmux on this platform", func() {
		_, err := New(Config{Socket: "/tmp/s", Binary: filepath.Join(shortDir(), "no-tmux")})
		Expect(err).To(MatchError(And(ContainSubstring("tmux is needed"), ContainSubstring("install"))))
		for _, row := range [][3]string{
			{"darwin", "", "brew install tmux"},
			{"linux", "NAME=x\nID=debian\n", "apt-get install tmux"},
			{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install tmux"},
			{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install tmux"},
			{"linux", "ID=alpine\n", "apk add tmux"},
			{"linux", "ID=arch\n", "pacman -S tmux"},
			{"linux", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "zypper install tmux"},
			{"linux", "ID=nixos\n", "nix-env"},
			{"linux", "ID=void\n", "install the package tmux"},
			{"linux", "", "install the package tmux"},
		} {
			Expect(installHint(row[0], row[1])).To(ContainSubstring(row[2]), "%v", row)
		}
	})

	DescribeTable("T08: judges the version of the client",
		func(text, refusal, warning string) {
			s, err := New(Config{Socket: "/tmp/s", Binary: fake(text)})
			if refusal != "" {
				Expect(err).To(MatchError(ContainSubstring(refusal)))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Version()).To(Equal(text))
			if warning == "" {
				Expect(s.Warnings()).To(BeEmpty())
			} else {
				Expect(s.Warnings()).To(ConsistOf(ContainSubstring(warning)))
			}
		},
		Entry(nil, "1.8", "3.2 is the minimum", ""),
		Entry(nil, "3.0a", "3.2 is the minimum", ""),
		Entry(nil, "3.1c", "3.2 is the minimum", ""),
		Entry(nil, "3.2", "", "upgrade to 3.4"),
		Entry(nil, "3.3a", "", "upgrade to 3.4"),
		Entry(nil, "3.4", "", ""),
		Entry(nil, "3.10", "", ""),
		Entry(nil, "next-3.8", "", ""),
		Entry(nil, "4.0", "", ""),
		Entry(nil, "master", "", "cannot be compared"),
		Entry(nil, "openbsd-7.5", "", "cannot be compared"),
	)

	It("refuses a program that is not tmux, and negative limits", func() {
		_, err := New(Config{Socket: "/tmp/s", Binary: script(shortDir(), "x", "echo GNU screen\n")})
		Expect(err).To(MatchError(ContainSubstring("this is not tmux")))
		_, err = New(Config{Socket: "/tmp/s", Binary: script(shortDir(), "x", "exit 1\n")})
		Expect(err).To(MatchError(ContainSubstring("does not work")))
		_, err = New(Config{Socket: "/tmp/s", Binary: fake("3.4"), Timeout: -time.Second})
		Expect(err).To(MatchError(ContainSubstring("must not be negative")))
	})
})

var _ = Describe("DefaultSocket", func() {
	uid := strconv.Itoa(os.Getuid())

	It("N17: is where tmux -L looks, with and without TMUX_TMPDIR", func() {
		GinkgoT().Setenv("TMUX_TMPDIR", "")
		Expect(DefaultSocket("the-loop")).To(Equal("/tmp/tmux-" + uid + "/the-loop"))
		dir := shortDir()
		GinkgoT().Setenv("TMUX_TMPDIR", dir)
		Expect(DefaultSocket("the-loop")).To(Equal(filepath.Join(dir, "tmux-"+uid, "the-loop")))
		GinkgoT().Setenv("TMUX_TMPDIR", filepath.Join(dir, "missing"))
		Expect(DefaultSocket("the-loop")).To(Equal("/tmp/tmux-" + uid + "/the-loop"))
	})

	It("N07: refuses names that are paths", func() {
		for _, name := range []string{"", "a/b", "/", ".", "..", "a\x00"} {
			_, err := DefaultSocket(name)
			Expect(err).To(HaveOccurred(), "%q", name)
		}
	})
})

var _ = Describe("The environment", func() {
	ours := []string{"PATH=/bin", "HOME=/root", "LANG=de_DE.UTF-8", "TZ=UTC", "XDG_RUNTIME_DIR=/run/user/0", "https_proxy=http://p",
		"HOOK_SECRET=s", "SLACK_TOKEN=s", "KUBECONFIG=/k", "ANTHROPIC_API_KEY=s", "CLAUDECODE=1", "LOOP_UID=u1",
		"TMUX=/tmp/x,1,0", "TMUX_PANE=%0", "TMUX_TMPDIR=/x", "EXTRA=1", "SSH_AUTH_SOCK=/s", "broken"}

	It("T27, T28: of a server holds neither our secrets nor the marks of a harness, only what is listed", func() {
		Expect(serverEnvironment(ours, []string{"EXTRA", "TMUX", "NOT_SET"})).To(ConsistOf("PATH=/bin", "HOME=/root", "LANG=de_DE.UTF-8", "TZ=UTC",
			"XDG_RUNTIME_DIR=/run/user/0", "https_proxy=http://p", "EXTRA=1"))
	})

	It("N09, T30: of a client has a UTF-8 locale, and leads to no other server", func() {
		Expect(clientEnvironment(ours)).To(ConsistOf("PATH=/bin", "HOME=/root", "LC_ALL=C.UTF-8"))
	})

	DescribeTable("T30: of a server always has a UTF-8 locale",
		func(given, want string) {
			Expect(serverEnvironment(strings.Fields(given), nil)).To(ConsistOf(strings.Fields(want)))
		},
		Entry(nil, "", "LANG=C.UTF-8"),
		Entry(nil, "LANG=C", "LANG=C.UTF-8"),
		Entry(nil, "LANG=en_US.utf8", "LANG=en_US.utf8"),
		Entry(nil, "LANG=en_US.UTF-8 LC_ALL=C LC_TIME=C", "LANG=C.UTF-8 LC_TIME=C"),
		Entry(nil, "LANG=C LC_CTYPE=en_US.UTF-8", "LANG=C LC_CTYPE=en_US.UTF-8"),
		Entry(nil, "LANG=en_US.UTF-8 LC_ALL=", "LANG=en_US.UTF-8 LC_ALL="),
	)
})
