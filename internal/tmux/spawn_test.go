//go:build linux

package tmux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
)

var _ = with("Spawn", func(bin string) {
	ctx := context.Background()

	It("T18, N04: creates exactly the session asked for, stamped, 200 by 50", func() {
		f := started(bin)
		req := f.request("loop-octo_foo-js-1", "/bin/sh", "-c", "exec sleep infinity")
		sp, err := f.Spawn(ctx, req)
		Expect(err).NotTo(HaveOccurred())
		Expect(sp.Epoch).To(Equal(f.epoch))
		s := f.session(req.Name)
		Expect(s).To(And(HaveField("ID", sp.SessionID), HaveField("UID", req.UID), HaveField("Generation", "1"), HaveField("Object", req.Object)))
		Expect(s.Panes).To(ConsistOf(And(HaveField("ID", sp.PaneID), HaveField("WindowID", sp.WindowID), HaveField("PID", sp.PanePID))))
		Expect(f.person("display-message", "-p", "-t", sp.PaneID, "#{pane_width}x#{window_height} #{pane_current_path}")).To(Equal("200x50 " + f.dir))
		small := f.request("small", "/bin/sleep", "infinity")
		small.Width, small.Height = 40, 10
		sp, err = f.Spawn(ctx, small)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.person("display-message", "-p", "-t", sp.PaneID, "#{pane_width}x#{window_height}")).To(Equal("40x10"))
	})

	It("N07, N10: refuses every name that some tmux rewrites, expands, parses or cannot address", func() {
		f := unstarted(bin)
		for _, name := range []string{"", "a.b", "a:b", "-a", "$a", "@a", "%a", "=a", "+a", "!a", "~a", "{a}", " a", "a b", "a\n", "a\tb", "é",
			"1a", "_a", "a;", "a|b", "a#b", "#(id)", "a'b", "a/b", "*", "a\x00", AnchorName, strings.Repeat("a", 201)} {
			_, err := f.Spawn(ctx, f.request(name, "/bin/sleep", "1"))
			Expect(err).To(MatchError(Or(ContainSubstring(NamePattern), ContainSubstring("reserved"))), "%q", name)
		}
		_, err := f.Spawn(ctx, f.request(strings.Repeat("a", 200), "/bin/sleep", "1"))
		Expect(err).To(MatchError(ErrAbsent))
	})

	It("refuses stamps, programs and sizes that cannot be meant", func() {
		f := unstarted(bin)
		for says, change := range map[string]func(*SpawnRequest){
			"the UID":               func(r *SpawnRequest) { r.UID = "a b" },
			"the UID ":              func(r *SpawnRequest) { r.UID = "" },
			"the generation":        func(r *SpawnRequest) { r.Generation = "1|2" },
			"the object":            func(r *SpawnRequest) { r.Object = "a b" },
			"two words":             func(r *SpawnRequest) { r.Argv = r.Argv[:1] },
			"absolute path":         func(r *SpawnRequest) { r.Argv[0] = "sleep" },
			`holds "="`:             func(r *SpawnRequest) { r.Argv[0] = "/opt/a=b/sleep" },
			"a terminal of -1":      func(r *SpawnRequest) { r.Width = -1 },
			"a terminal of 0x10001": func(r *SpawnRequest) { r.Height = 10001 },
			"NUL":                   func(r *SpawnRequest) { r.Argv = append(r.Argv, "a\x00b") },
			"at most 16000":         func(r *SpawnRequest) { r.Argv = append(r.Argv, strings.Repeat("x", 16000)) },
			"at most 1000":          func(r *SpawnRequest) { r.Argv = append(r.Argv, make([]string, 1000)...) },
		} {
			req := f.request("a", "/bin/sleep", "1")
			change(&req)
			_, err := f.Spawn(ctx, req)
			Expect(err).To(MatchError(ContainSubstring(strings.TrimSpace(says))))
			Expect(err).NotTo(MatchError(ErrUnknown))
		}
	})

	It("N14: gives a name to one of 20 that want it at once, and the others know", func() {
		f := started(bin)
		var mu sync.Mutex
		won, lost := []string{}, 0
		var all sync.WaitGroup
		for range 20 {
			req := f.request("loop-a-1", "/bin/sleep", "infinity")
			all.Go(func() {
				defer GinkgoRecover()
				_, err := f.Spawn(ctx, req)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, req.UID)
					return
				}
				Expect(err).To(MatchError(ErrDuplicate))
				lost++
			})
		}
		all.Wait()
		Expect(won).To(HaveLen(1))
		Expect(lost).To(Equal(19))
		Expect(f.session("loop-a-1")).To(And(HaveField("UID", won[0]), HaveField("Panes", HaveLen(1))))
	})

	It("changes nothing about a session of the same name, be it foreign or dead", func() {
		f := started(bin)
		f.person("new-session", "-d", "-s", "foreign", "--", "/bin/sleep", "infinity")
		f.spawn("dead", "/bin/sh", "-c", "exit 3")
		f.died("dead")
		before := f.snapshot()
		for _, name := range []string{"foreign", "dead"} {
			_, err := f.Spawn(ctx, f.request(name, "/bin/sleep", "infinity"))
			Expect(err).To(MatchError(ErrDuplicate))
		}
		Expect(f.snapshot().Sessions).To(Equal(before.Sessions))
	})

	It("C018 T12: keeps the end of a program that ends at once, 20 times out of 20", func() {
		f := started(bin)
		f.person("set-option", "-gw", "remain-on-exit", "off") // a person's drift does not matter
		for i := range 20 {
			f.spawn(fmt.Sprint("fast", i), "/bin/sh", "-c", "echo cannot start; exit 1")
		}
		for i := range 20 {
			s := f.died(fmt.Sprint("fast", i))
			Expect(*s.Panes[0].ExitStatus).To(Equal(1))
		}
	})

	It("T26: a program that cannot be executed is a dead pane with 126 or 127", func() {
		f := started(bin)
		plain := filepath.Join(f.dir, "plain")
		Expect(os.WriteFile(plain, []byte("x"), 0o600)).To(Succeed())
		f.spawn("missing", "/no/such/harness", "--x")
		f.spawn("not-executable", plain, "--x")
		Expect(*f.died("missing").Panes[0].ExitStatus).To(Equal(127))
		Expect(*f.died("not-executable").Panes[0].ExitStatus).To(Equal(126))
	})

	It("T25: refuses a directory that does not exist or is none", func() {
		f := started(bin)
		file := filepath.Join(f.dir, "file")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		for _, dir := range []string{"", ".", "relative", filepath.Join(f.dir, "missing"), file} {
			req := f.request("a", "/bin/sleep", "infinity")
			req.Dir = dir
			_, err := f.Spawn(ctx, req)
			Expect(err).To(HaveOccurred(), dir)
		}
		Expect(f.names()).To(BeEmpty())
	})

	It("T25: ends at once what the server started elsewhere, because it does not see the directory", func() {
		needNamespace("-m")
		dir := shortDir()
		work := filepath.Join(dir, "work")
		Expect(os.Mkdir(work, 0o700)).To(Succeed())
		// A server whose mount namespace has something else in that place.
		wrapper := script(dir, "tmux", `case "$*" in *" -D "*) exec unshare -m /bin/sh -c 'mount -t tmpfs none `+dir+` && exec `+lookPath(bin)+` "$@"' sh "$@";; esac
exec `+lookPath(bin)+` "$@"`)
		f := started(wrapper)
		req := f.request("a", "/bin/sleep", "infinity")
		req.Dir = work
		_, err := f.Spawn(ctx, req)
		Expect(err).To(MatchError(And(ContainSubstring("cannot enter "+work), ContainSubstring("the session was ended"))))
		Expect(f.names()).To(BeEmpty())
	})

	It("starts in directories of all names, and runs nothing that they contain", func() {
		f := started(bin)
		for i, name := range []string{"plain", "with space", "semi;", ";", "#(touch ran)", "##", "#{pid}", "#S", "%H", "$HOME", "~", "'\"`", "é日本", "a\nb", "-x", "{a}"} {
			dir := filepath.Join(f.dir, name)
			Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
			req := f.request(fmt.Sprint("d", i), "/bin/sh", "-c", "pwd >"+f.dir+"/pwd; echo READY; exec sleep infinity")
			req.Dir = dir
			sp, err := f.Spawn(ctx, req)
			Expect(err).NotTo(HaveOccurred(), "%q", name)
			f.ready(Target{UID: req.UID, SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch})
			Expect(fileText(f.dir + "/pwd")).To(Equal(dir + "\n"))
		}
		ran, err := filepath.Glob(filepath.Join(f.dir, "*", "ran"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ran).To(BeEmpty())
		Expect(filepath.Join(f.dir, "ran")).NotTo(BeAnExistingFile())
	})

	It("hands arguments over as they are, without a shell", func() {
		f := started(bin)
		args := []string{"", ";", "a;", `a\;`, `\;`, ";;", "a;b", "$(id)", "`id`", "$HOME", "~", "*", "#{pid}", "#(id)", "%H", "{x}", "}", "'", `"`, `\`, `\\`,
			"two\nlines", "tab\t", "é日本😀", "-x", "--", "-", "=a", "a=b", " ", "|", "&&", "\x01\x1b[31m", strings.Repeat("x", 8000)}
		out := filepath.Join(f.dir, "args")
		t := f.spawn("a", append([]string{"/bin/sh", "-c", `for a do printf '%s\0' "$a"; done >` + out + `; echo READY; exec sleep infinity`, "sh"}, args...)...)
		f.ready(t)
		Expect(strings.Split(strings.TrimSuffix(fileText(out), "\x00"), "\x00")).To(Equal(args))
	})

	It("says that there is no server, and starts none", func() {
		f := unstarted(bin)
		_, err := f.Spawn(ctx, f.request("a", "/bin/sleep", "infinity"))
		Expect(err).To(MatchError(ErrAbsent))
		Expect(f.socket).NotTo(BeAnExistingFile())
	})
})
