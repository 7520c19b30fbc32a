package main

import (
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

var _ = Describe("doctor", func() {
	It("says nothing when all is well, and names each problem with what helps", func() {
		s := newStage()
		// A terminal server's directory and a tmux of its own: that of this machine may be old.
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\necho tmux 3.6\n"), 0o700)).To(Succeed())
		GinkgoT().Setenv("PATH", dir+":"+os.Getenv("PATH"))
		GinkgoT().Setenv("TMUX_TMPDIR", dir)

		a := s.run("", "doctor")
		Expect(a.Code).To(Equal(1))
		Expect(a.Err).To(And(ContainSubstring("PROBLEM  hosts: there is none"), ContainSubstring("fix: the-loop up")))

		host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "build-1"}, Status: api.SessionHostStatus{
			Harnesses:  []api.HostHarness{{Name: "claude", Path: "/usr/bin/claude"}},
			Conditions: []metav1.Condition{cond(api.ConditionHostReady, metav1.ConditionTrue, api.ReasonLeaseRenewed, "x")},
		}}
		s.create(host)
		s.create(&api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{api.DefaultClassLabel: "true"}}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude"}}})
		Expect(s.run("", "doctor")).To(Equal(answered{}))
		Expect(s.run("", "doctor", "--verbose").Out).To(And(ContainSubstring("ok       tmux: version 3.6"), ContainSubstring("ok       kinds: theloop.dev/v1alpha1 is served"), ContainSubstring("ok       rights: ")))

		By("a harness that is nowhere, which is a warning")
		s.create(&api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "codex"}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "codex"}}})
		a = s.run("", "doctor")
		Expect(a.Code).To(Equal(0))
		Expect(a.Err).To(And(ContainSubstring("warning  class codex: it runs codex, which no host has"), ContainSubstring("fix: npm install -g @openai/codex")))

		By("rights that are lacking, which is a warning")
		a = s.run("", "doctor", "--as", "nobody")
		Expect(a.Err).To(ContainSubstring("you may not list workitemsessions"))

		By("no tmux, which is a problem, with the command that installs it")
		GinkgoT().Setenv("PATH", "/nonexistent")
		a = s.run("", "doctor")
		Expect(a.Code).To(Equal(1))
		Expect(a.Err).To(And(MatchRegexp(`PROBLEM  tmux: (?s:.*)install`), ContainSubstring("warning  git: ")))

		By("a cluster that does not answer")
		s.server = "https://127.0.0.1:1"
		s.writeKubeconfig()
		a = s.run("", "doctor")
		Expect(a.Code).To(Equal(1))
		Expect(a.Err).To(ContainSubstring("PROBLEM  cluster: it does not answer"))
	})

	DescribeTable("names the command that installs a package on each platform",
		func(goos, release, want string) { Expect(installHint("git", goos, release)).To(Equal(want)) },
		Entry(nil, "darwin", "", "brew install git"),
		Entry(nil, "linux", "ID=debian\n", "apt-get install git"),
		Entry(nil, "linux", "ID=mint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install git"),
		Entry(nil, "linux", "ID=fedora\n", "dnf install git"),
		Entry(nil, "linux", "ID=alpine\n", "apk add git"),
		Entry(nil, "linux", "ID=arch\n", "pacman -S git"),
		Entry(nil, "linux", "", "install the package git"),
	)

	DescribeTable("compares clocks, with the second that the header lacks",
		func(there time.Duration, warns string) {
			now := time.Now()
			f := clockFinding(now.Add(there).UTC().Format(http.TimeFormat), now, now.Add(time.Second))
			if warns == "" {
				Expect(f.Problem).To(BeEmpty())
				return
			}
			Expect(f.Problem).To(ContainSubstring(warns))
			Expect(f.Warning).To(BeTrue())
		},
		Entry(nil, time.Duration(0), ""), Entry(nil, -3*time.Second, ""), Entry(nil, 3*time.Second, ""),
		Entry(nil, -time.Minute, "ahead of the cluster's"), Entry(nil, time.Hour, "behind the cluster's"),
	)

	It("refuses a socket directory that others can enter", func() {
		dir := filepath.Join(GinkgoT().TempDir(), "open")
		Expect(os.Mkdir(dir, 0o755)).To(Succeed())
		Expect(os.Chmod(dir, 0o755)).To(Succeed())
		Expect(checkSocket(filepath.Join(dir, "s"))[0]).To(And(HaveField("Problem", ContainSubstring("mode 755")), HaveField("Fix", "chmod 700 "+dir)))
		Expect(os.Chmod(dir, 0o700)).To(Succeed())
		Expect(checkSocket(filepath.Join(dir, "s"))[0].Problem).To(BeEmpty())
	})
})
