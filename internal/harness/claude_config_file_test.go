package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// prepareHelper makes the test program a process that prepares one directory:
// HOME, lock directory, directories to trust.
const prepareHelper = "THE_LOOP_TEST_PREPARE"

func init() {
	if spec := os.Getenv(prepareHelper); spec != "" {
		f := strings.Split(spec, "|")
		for _, dir := range f[2:] {
			_, err := claude{}.Prepare(context.Background(), PrepareOptions{
				Dir: dir, Lookup: func(k string) string { return map[string]string{"HOME": f[0]}[k] }, Trust: true, LockDir: f[1],
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
}

// other is another process that trusts directories.
func (p *prep) other(dirs ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{prepareHelper + "=" + strings.Join(append([]string{p.home, filepath.Join(p.base, "locks")}, dirs...), "|")}
	return cmd
}

// writer rewrites a file as a harness does: read, one more key, rename. It holds the
// file's lock while it does when locked. It returns the number of keys it wrote. It writes
// a hundred times a second, on a busy machine as often as leaves it at most a tenth of the
// time in between reading and writing: one that always is undoes every write of others.
func writer(ctx context.Context, path string, locked bool) (n int, err error) {
	const period, share = 10 * time.Millisecond, 10
	next := time.NewTimer(period)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return n, nil
		case <-next.C:
		}
		start := time.Now()
		if locked {
			if err := os.Mkdir(path+".lock", 0o755); errors.Is(err, os.ErrExist) {
				next.Reset(period)
				continue
			} else if err != nil {
				return n, err
			}
		}
		err := oneMore(path, n)
		if locked {
			err = errors.Join(err, os.Remove(path+".lock"))
		}
		if err != nil {
			return n, err
		}
		n++
		next.Reset(max(period, (share-1)*time.Since(start)))
	}
}

// oneMore starts again when it was so slow on a busy machine that nobody could expect
// of it to write what it had read.
func oneMore(path string, n int) error {
	start := time.Now()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("the file was not valid: %w", err)
	}
	all[fmt.Sprintf("w%d", n)] = json.RawMessage("1")
	if b, err = json.Marshal(all); err != nil {
		return err
	}
	if err := os.WriteFile(path+".w", b, 0o600); err != nil {
		return err
	}
	if time.Since(start) > configSettle/2 {
		return oneMore(path, n)
	}
	return os.Rename(path+".w", path)
}

var _ = Describe("writing a config that others write too", func() {
	DescribeTable("C151 H09 H10: eight processes and a harness that writes a hundred times a second lose no key",
		func(locked bool) {
			p := newPrep()
			write(p.user(), `{"oauthAccount":{"id":12345678901234567890}}`)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			var group errgroup.Group
			var n int
			group.Go(func() (err error) { n, err = writer(ctx, p.user(), locked); return err })
			var procs errgroup.Group
			var dirs []string
			for i := range 8 {
				var mine []string
				for j := range 4 {
					mine = append(mine, filepath.Join(p.base, fmt.Sprintf("d%d-%d", i, j)))
				}
				dirs = append(dirs, mine...)
				procs.Go(func() error {
					out, err := p.other(mine...).CombinedOutput()
					if err != nil {
						return fmt.Errorf("%w: %s", err, out)
					}
					return nil
				})
			}
			Expect(procs.Wait()).To(Succeed())
			stop()
			Expect(group.Wait()).To(Succeed())
			var all map[string]json.RawMessage
			Expect(json.Unmarshal([]byte(read(p.user())), &all)).To(Succeed())
			Expect(string(all["oauthAccount"])).To(Equal(`{"id":12345678901234567890}`))
			for i := range n {
				Expect(all).To(HaveKey(fmt.Sprintf("w%d", i)))
			}
			for _, d := range dirs {
				Expect(trusted(p.user())).To(HaveKey(d))
			}
			Expect(filepath.Glob(filepath.Join(p.home, ".*the-loop*"))).To(BeEmpty())
		},
		Entry("that holds its lock", true),
		Entry("that holds no lock", false),
	)

	It("goes on from what another process wrote just before the exchange, and loses neither", func() {
		p := newPrep()
		write(p.user(), `{"a":1}`)
		old := content{}
		var err error
		old.text, old.info, err = readConfig(p.user())
		Expect(err).NotTo(HaveOccurred())
		write(p.user(), `{"a":1,"b":2}`)
		Expect(replaceConfig(p.user(), old, []byte(`{"a":1,"c":3}`), true)).To(MatchError(errIntervened))
		Expect(read(p.user())).To(Equal(`{"a":1,"b":2}`))
	})

	It("creates a file only where there is still none", func() {
		p := newPrep()
		tmp := filepath.Join(p.home, "tmp")
		write(tmp, "{}")
		write(p.user(), `{"a":1}`)
		Expect(putNew(tmp, p.user())).To(MatchError(errIntervened))
		Expect(read(p.user())).To(Equal(`{"a":1}`))
	})

	It("waits for a file that is being written in place", func() {
		p := newPrep()
		write(p.user(), "")
		var group errgroup.Group
		group.Go(func() error {
			// Long enough to be read torn, well below what is waited for.
			timer := time.NewTimer(configTorn / 4)
			<-timer.C
			return os.WriteFile(p.user(), []byte(`{"a":1}`), 0o600)
		})
		Expect(p.prepare(nil).Applied).To(HaveLen(2))
		Expect(group.Wait()).To(Succeed())
		Expect(read(p.user())).To(ContainSubstring(`"a":1`))
	})

	It("does not wait for a lock of the harness that was left behind", func() {
		p := newPrep()
		lock := p.user() + ".lock"
		Expect(os.Mkdir(lock, 0o755)).To(Succeed())
		past := time.Now().Add(-time.Minute)
		Expect(os.Chtimes(lock, past, past)).To(Succeed())
		start := time.Now()
		p.prepare(nil)
		Expect(time.Since(start)).To(BeNumerically("<", peerLockWait))
		Expect(lock).NotTo(BeADirectory())
	})

	It("gives up when the context ends while another process has the lock", func() {
		p := newPrep()
		o := p.options(nil)
		c := &configFile{path: p.user(), lockDir: o.LockDir}
		unlock, err := c.lock(context.Background(), p.user())
		Expect(err).NotTo(HaveOccurred())
		defer unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err = claude{}.Prepare(ctx, o)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(p.user()).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("the file that is written", func() {
	DescribeTable("H12: is never touched when it is not what it should be",
		func(text, want string) {
			p := newPrep()
			write(p.user(), text)
			done, err := p.try(nil)
			Expect(err).To(MatchError(And(ContainSubstring(p.user()), ContainSubstring(want), ContainSubstring("mend it"))))
			Expect(done.Applied).To(BeEmpty())
			Expect(read(p.user())).To(Equal(text))
		},
		Entry("a trailing comma", `{"a":1,}`, "not valid JSON"),
		Entry("zero bytes", ``, "not valid JSON"),
		Entry("a byte order mark", "\ufeff{}", "not valid JSON"),
		Entry("half a file", `{"projects":{"/x":{"hasTr`, "not valid JSON"),
		Entry("a comment", "{} // mine", "not valid JSON"),
		Entry("two values", "{}{}", "not valid JSON"),
		Entry("a list", "[]", "no JSON object"),
		Entry("null", "null", "no JSON object"),
		Entry("projects is a list", `{"projects":[]}`, `"projects"`),
		Entry("projects is null", `{"projects":null}`, `"projects"`),
		Entry("a later projects is a text", `{"projects":{},"projects":"x"}`, `"projects"`),
	)

	It("H12: is never touched when the project is no object", func() {
		p := newPrep()
		text := fmt.Sprintf(`{"projects":{%q:true}}`, p.dir)
		write(p.user(), text)
		_, err := p.try(nil)
		Expect(err).To(MatchError(ContainSubstring("mend it")))
		Expect(read(p.user())).To(Equal(text))
	})

	DescribeTable("keeps every other byte", func(before, after string) {
		out, applied, err := applyEdits([]byte(before), []configEdit{{path: []string{"p", "/d", "k"}, value: "true", what: "x"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal(after))
		Expect(json.Valid(out)).To(BeTrue())
		Expect(applied).To(Equal([]string{"x"}))
		again, applied, err := applyEdits(out, []configEdit{{path: []string{"p", "/d", "k"}, value: "true", what: "x"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(out))
		Expect(applied).To(BeEmpty())
	},
		Entry("compact", `{"z":1e400,"a":12345678901234567890}`, `{"z":1e400,"a":12345678901234567890,"p":{"/d": {"k": true}}}`),
		Entry("indented", "{\n  \"z\": 1.0,\n  \"p\": {\n    \"/c\": {}\n  }\n}\n", "{\n  \"z\": 1.0,\n  \"p\": {\n    \"/c\": {},\n    \"/d\": {\n      \"k\": true\n    }\n  }\n}\n"),
		Entry("tabs and CRLF", "{\r\n\t\"a\" : {}\r\n}", "{\r\n\t\"a\" : {},\r\n\t\"p\" : {\r\n\t\t\"/d\": {\r\n\t\t\t\"k\": true\r\n\t\t}\r\n\t}\r\n}"),
		Entry("an existing value", `{"p": {"/d": {"k": [1,  {"x":"}"}] , "l": null}}}`, `{"p": {"/d": {"k": true , "l": null}}}`),
		Entry("an escaped key", `{"p":{"\/d":{"k":false}}}`, `{"p":{"\/d":{"k":true}}}`),
		Entry("a key that comes twice", `{"p":{"/d":{"k":true}},"p":{"/d":{"k":0}}}`, `{"p":{"/d":{"k":true}},"p":{"/d":{"k":true}}}`),
		Entry("lone surrogates and bytes that are no text", "{\"\\ud800\":\"\xff<>&\",\"p\":{\"/d\":{}}}", "{\"\\ud800\":\"\xff<>&\",\"p\":{\"/d\":{\"k\": true}}}"),
		Entry("blank space around", " \n{}\n\n", " \n{\n  \"p\": {\n    \"/d\": {\n      \"k\": true\n    }\n  }\n}\n\n"),
	)

	It("C150: keeps its mode and is written through symbolic links, also into a file that is not there yet", func() {
		p := newPrep()
		for _, exists := range []bool{true, false} {
			target := filepath.Join(p.base, fmt.Sprintf("dotfiles-%t", exists), "claude.json")
			Expect(os.MkdirAll(filepath.Dir(target), 0o755)).To(Succeed())
			if exists {
				write(target, "{}")
				Expect(os.Chmod(target, 0o640)).To(Succeed())
			}
			_ = os.Remove(p.user())
			middle := filepath.Join(filepath.Dir(target), "middle")
			Expect(os.Symlink("claude.json", middle)).To(Succeed())
			Expect(os.Symlink(middle, p.user())).To(Succeed())
			p.prepare(nil)
			for _, l := range []string{middle, p.user()} {
				info, err := os.Lstat(l)
				Expect(err).NotTo(HaveOccurred())
				Expect(info.Mode() & os.ModeSymlink).NotTo(BeZero())
			}
			info, err := os.Lstat(target)
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().IsRegular()).To(BeTrue())
			Expect(info.Mode().Perm()).To(Equal(map[bool]os.FileMode{true: 0o640, false: 0o600}[exists]))
			Expect(trusted(target)).To(HaveKey(p.dir))
		}
	})

	It("refuses a circle of links, a directory and a pipe", func() {
		p := newPrep()
		Expect(os.Symlink(p.user(), p.user())).To(Succeed())
		_, err := p.try(nil)
		Expect(err).To(MatchError(ContainSubstring("circle")))
		Expect(os.Remove(p.user())).To(Succeed())
		Expect(os.Mkdir(p.user(), 0o755)).To(Succeed())
		_, err = p.try(nil)
		Expect(err).To(MatchError(ContainSubstring("no regular file")))
		Expect(os.Remove(p.user())).To(Succeed())
		Expect(syscall.Mkfifo(p.user(), 0o600)).To(Succeed())
		_, err = p.try(nil)
		Expect(err).To(MatchError(ContainSubstring("no regular file")))
	})

	It("T35: is left as it is in a directory that cannot be written, and nothing is needed there when all is right", func() {
		p := newPrep()
		write(p.user(), `{"a":1}`)
		Expect(os.Chmod(p.home, 0o555)).To(Succeed())
		DeferCleanup(os.Chmod, p.home, os.FileMode(0o755))
		Expect(os.Mkdir(filepath.Join(p.base, "locks"), 0o777)).To(Succeed())
		Expect(os.Chmod(filepath.Join(p.base, "locks"), 0o777)).To(Succeed())
		run := func() (string, error) {
			cmd := p.other(p.dir)
			if os.Geteuid() == 0 { // to whom nothing is read-only
				for d := p.base; d != "/"; d = filepath.Dir(d) {
					if info, err := os.Stat(d); err == nil && info.Mode()&0o005 != 0o005 {
						Expect(os.Chmod(d, info.Mode()|0o005)).To(Succeed())
					}
				}
				const nobody = 65534
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		out, err := run()
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring(p.user()), ContainSubstring("permission denied")))
		Expect(read(p.user())).To(Equal(`{"a":1}`))
		write(p.user(), fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, p.dir))
		out, err = run()
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("keeps its owner when root writes it", func() {
		if os.Geteuid() != 0 {
			Skip("needs root")
		}
		p := newPrep()
		write(p.user(), "{}")
		const nobody = 65534
		Expect(os.Chown(p.user(), nobody, nobody)).To(Succeed())
		p.prepare(nil)
		info, err := os.Stat(p.user())
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Sys().(*syscall.Stat_t).Uid).To(BeEquivalentTo(nobody))
	})
})
