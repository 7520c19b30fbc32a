package cliconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// put writes a file that declares one session of this name.
func put(path, name string) string {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.WriteFile(path, []byte("standingSessions: {sessions: [{name: "+name+"}]}\n"), 0o600)).To(Succeed())
	return path
}

var _ = Describe("Load", Serial, func() {
	var work, home string
	BeforeEach(func() {
		work, home = GinkgoT().TempDir(), GinkgoT().TempDir()
		GinkgoT().Chdir(work)
		GinkgoT().Setenv("HOME", home)
		GinkgoT().Setenv(Variable, "")
	})

	It("takes the named file, then the variable's, then that of the working directory, then that of the home directory", func() {
		atHome := put(filepath.Join(home, ".the-loop", "cli-config.yaml"), "home")
		atWork := put(filepath.Join(work, ".the-loop", "cli-config.yaml"), "work")
		of := put(filepath.Join(work, "variable.yaml"), "variable")
		named := put(filepath.Join(work, "named.yaml"), "named")

		GinkgoT().Setenv(Variable, of)
		for _, want := range []struct{ flag, path, by, name string }{
			{"named.yaml", named, "--config", "named"},
			{"", of, "$THE_LOOP_CLI_CONFIG", "variable"},
			{"", atWork, "the working directory", "work"},
			{"", atHome, "the home directory", "home"},
		} {
			c, err := Load(want.flag)
			Expect(err).NotTo(HaveOccurred())
			Expect(c.File).To(Equal(want.path))
			Expect(c.NamedBy).To(Equal(want.by))
			Expect(c.StandingSessions.Sessions[0].Name).To(Equal(want.name))
			switch want.by {
			case "$THE_LOOP_CLI_CONFIG":
				GinkgoT().Setenv(Variable, "")
			case "the working directory":
				Expect(os.Remove(atWork)).To(Succeed())
			}
		}
	})

	It("declares nothing without any file", func() {
		Expect(Load("")).To(Equal(&Config{}))
	})

	It("refuses a file that is named and not there, and never takes another instead", func() {
		put(filepath.Join(home, ".the-loop", "cli-config.yaml"), "home")
		_, err := Load("missing.yaml")
		Expect(err).To(MatchError("the configuration file of --config cannot be read: open missing.yaml: no such file or directory"))
		GinkgoT().Setenv(Variable, "gone.yaml")
		_, err = Load("")
		Expect(err).To(MatchError(ContainSubstring("of $THE_LOOP_CLI_CONFIG cannot be read: open gone.yaml")))
	})

	It("refuses a file that cannot be read, and never takes another instead", func() {
		put(filepath.Join(home, ".the-loop", "cli-config.yaml"), "home")
		Expect(os.MkdirAll(filepath.Join(work, ".the-loop", "cli-config.yaml"), 0o700)).To(Succeed())
		_, err := Load("")
		Expect(err).To(MatchError(ContainSubstring("of the working directory cannot be read")))
	})

	It("refuses the file of a git checkout that one happens to stand in, and takes it when it is named", func() {
		path := put(filepath.Join(work, "sub", ".the-loop", "cli-config.yaml"), "stranger")
		Expect(os.Mkdir(filepath.Join(work, ".git"), 0o700)).To(Succeed())
		GinkgoT().Chdir(filepath.Join(work, "sub"))
		_, err := Load("")
		Expect(err).To(MatchError(And(ContainSubstring("lies in the git checkout "+work), ContainSubstring("--config"))))
		c, err := Load(filepath.Join(".the-loop", "cli-config.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.File).To(Equal(path))
	})

	It("refuses a file that is wrong, by its absolute path", func() {
		Expect(os.WriteFile("bad.yaml", []byte("a: 1\n"), 0o600)).To(Succeed())
		_, err := Load("bad.yaml")
		var invalid *InvalidError
		Expect(errors.As(err, &invalid)).To(BeTrue())
		Expect(invalid.File).To(Equal(filepath.Join(work, "bad.yaml")))
	})

	It("refuses a file that cannot be meant", func() {
		Expect(os.WriteFile("big.yaml", []byte(strings.Repeat("# nothing\n", 1<<19)), 0o600)).To(Succeed())
		_, err := Load("big.yaml")
		Expect(err).To(MatchError(ContainSubstring("more than 4194304 bytes")))
	})
})
