package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/launch"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

func TestLaunch(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "launch")
}

var _ = BeforeEach(func() {
	leaks := ground.Leaks()
	DeferCleanup(func() { Eventually(leaks).Should(Succeed()) })
})

var _ = Describe("a launch file", func() {
	var dir string
	valid := func() launch.File {
		return launch.File{
			Argv: []string{"/bin/claude", "--settings", `{"a":"<&>"}`, "", "漢字\n"}, Env: []string{"A=1", "EMPTY="},
			Unset: []string{"SECRET"}, Dir: "/work", UID: "u-1", Session: "loop-x", GraceMillis: 1500,
		}
	}
	BeforeEach(func() { dir = GinkgoT().TempDir() })

	It("comes back as it was written", func() {
		path, err := launch.Write(dir, valid())
		Expect(err).NotTo(HaveOccurred())
		Expect(launch.Read(path)).To(Equal(valid()))
	})

	It("carries what tmux's command line could not", func() {
		f := valid()
		f.Argv = append(f.Argv, strings.Repeat("x", 5<<20))
		path, err := launch.Write(dir, f)
		Expect(err).NotTo(HaveOccurred())
		Expect(launch.Read(path)).To(Equal(f))
	})

	It("is private, unique and whole", func() {
		one, err := launch.Write(dir, valid())
		Expect(err).NotTo(HaveOccurred())
		two, err := launch.Write(dir, valid())
		Expect(err).NotTo(HaveOccurred())
		Expect(one).NotTo(Equal(two))
		st, err := os.Stat(one)
		Expect(err).NotTo(HaveOccurred())
		Expect(st.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		entries, err := os.ReadDir(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(2), "no temporary file is left")
	})

	It("leaves nothing behind when it cannot be written", func() {
		_, err := launch.Write(filepath.Join(dir, "missing"), valid())
		Expect(err).To(MatchError(os.ErrNotExist))
		f := valid()
		f.Argv = append(f.Argv, strings.Repeat("x", launch.MaxSize))
		_, err = launch.Write(dir, f)
		Expect(err).To(MatchError(And(ContainSubstring("loop-x"), ContainSubstring("the limit is"))))
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})

	DescribeTable("what cannot be launched",
		func(change func(*launch.File), says string) {
			f := valid()
			change(&f)
			_, err := launch.Write(dir, f)
			Expect(err).To(MatchError(ContainSubstring(says)))
			Expect(os.ReadDir(dir)).To(BeEmpty())

			data, err := json.Marshal(f)
			Expect(err).NotTo(HaveOccurred())
			path := filepath.Join(dir, "x.json")
			Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
			if !strings.Contains(says, "UTF-8") { // JSON cannot hold it
				_, err = launch.Read(path)
				Expect(err).To(MatchError(ContainSubstring(says)))
			}
		},
		Entry("no argv", func(f *launch.File) { f.Argv = nil }, "argv is empty"),
		Entry("an empty executable", func(f *launch.File) { f.Argv[0] = "" }, "argv is empty"),
		Entry("a relative directory", func(f *launch.File) { f.Dir = "work" }, "not an absolute path"),
		Entry("no directory", func(f *launch.File) { f.Dir = "" }, "not an absolute path"),
		Entry("no uid", func(f *launch.File) { f.UID = "" }, "uid is empty"),
		Entry("NUL in argv", func(f *launch.File) { f.Argv[1] = "a\x00b" }, "argv[1] contains a NUL byte"),
		Entry("NUL in the directory", func(f *launch.File) { f.Dir = "/a\x00" }, "contains a NUL byte"),
		Entry("NUL in the uid", func(f *launch.File) { f.UID = "a\x00" }, "LOOP_UID contains a NUL byte"),
		Entry("argv that JSON would change", func(f *launch.File) { f.Argv[1] = "\xff" }, "argv[1] contains bytes that are not UTF-8"),
		Entry("env that JSON would change", func(f *launch.File) { f.Env = []string{"K=\xff"} }, "env K contains bytes that are not UTF-8"),
		Entry("env without =", func(f *launch.File) { f.Env = []string{"PATH"} }, `"PATH" is not of the form KEY=value`),
		Entry("env without a key", func(f *launch.File) { f.Env = []string{"=x"} }, "not of the form KEY=value"),
	)

	It("does not repeat a secret in an error", func() {
		f := valid()
		f.Env = []string{"TOKEN=hunter2\x00"}
		_, err := launch.Write(dir, f)
		Expect(err).To(MatchError(Not(ContainSubstring("hunter2"))))
	})

	DescribeTable("files that are not read",
		func(prepare func(path string), says string) {
			path := filepath.Join(dir, "x.json")
			prepare(path)
			_, err := launch.Read(path)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("a missing one", func(string) {}, "no such file"),
		Entry("one that others can read", func(p string) { Expect(os.WriteFile(p, []byte("{}"), 0o644)).To(Succeed()) }, "must be 0600"),
		Entry("a directory", func(p string) { Expect(os.Mkdir(p, 0o700)).To(Succeed()) }, "no regular file"),
		Entry("a link", func(p string) { Expect(os.Symlink("/etc/passwd", p)).To(Succeed()) }, "opening the launch file"),
		Entry("garbage", func(p string) { Expect(os.WriteFile(p, []byte("}"), 0o600)).To(Succeed()) }, "not valid JSON"),
		Entry("an empty one", func(p string) { Expect(os.WriteFile(p, nil, 0o600)).To(Succeed()) }, "not valid JSON"),
		Entry("a huge one", func(p string) {
			Expect(os.WriteFile(p, nil, 0o600)).To(Succeed())
			Expect(os.Truncate(p, launch.MaxSize+1)).To(Succeed())
		}, "the limit is"),
	)

	It("makes the environment: base, without the unset ones and tmux's, then its own, each key once", func() {
		f := launch.File{Dir: "/work", UID: "u", Unset: []string{"SECRET"}, Env: []string{"A=2", "B=3", "B=4", "LOOP_UID=forged", "SECRET=mine"}}
		base := []string{"A=1", "SECRET=s", "TMUX=/tmp/x,1,0", "TMUX_PANE=%1", "PWD=/old", "LOOP_UID=other", "odd", "C=c=d"}
		Expect(f.Environ(base)).To(Equal([]string{"A=2", "PWD=/work", "LOOP_UID=u", "C=c=d", "B=4", "SECRET=mine"}))
	})

	DescribeTable("the grace",
		func(millis int64, want time.Duration) {
			Expect(launch.File{GraceMillis: millis}.Grace()).To(Equal(want))
		},
		Entry("by default", int64(0), launch.DefaultGrace),
		Entry("none", int64(-1), time.Duration(0)),
		Entry("as given", int64(250), 250*time.Millisecond),
		Entry("bounded", int64(1)<<62, launch.MaxGrace),
	)
})
