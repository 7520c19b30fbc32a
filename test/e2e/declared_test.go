package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/theloop-dev/the-loop/internal/devcluster"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// declare writes the configuration file of the home directory of u.
func (u *upState) declare(text string) string {
	GinkgoHelper()
	path := filepath.Join(u.dir, ".the-loop", "cli-config.yaml")
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// kubectl is that of a person who works with this `up`.
func (u *upState) kubectl(args ...string) string {
	GinkgoHelper()
	cmd := exec.Command(ground.Kubectl(GinkgoTB()), args...)
	cmd.Env = append(os.Environ(), "HOME="+u.dir, "KUBECONFIG="+filepath.Join(u.dir, "control-plane", "kubeconfig"))
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// becomes waits until the session is ready for this reason: Running or Stopped.
func (u *upState) becomes(name, reason string) {
	GinkgoHelper()
	u.kubectl("wait", "--for=jsonpath={.status.conditions[?(@.type=='Ready')].reason}="+reason, "standing/"+name, "--timeout=30s")
}

// lives are the pids of the live sessions by their names.
func (u *upState) lives() map[string]int {
	GinkgoHelper()
	snap, err := u.server.Snapshot(context.Background())
	Expect(err).NotTo(HaveOccurred())
	live := map[string]int{}
	for _, s := range snap.Sessions {
		if s.Live() {
			live[strings.TrimPrefix(s.Name, "loop-standing-")] = s.Panes[0].PID
		}
	}
	return live
}

var _ = Describe("the-loop up with declared sessions", func() {
	It("C161 C162 refuses a file that is wrong with every place before anything is started; what runs goes on, and down ends it", func() {
		u := newUpState()
		p := u.up()
		isReady(p)
		p.Stop()
		pid := u.panePID()

		u.declare(`standingSessions:
  sessions:
    - name: a
    - name: a
    - {name: b, prompt: x, promptFile: /x}
`)
		p = u.up()
		Eventually(p.Session, 20*time.Second).Should(gexec.Exit(2))
		said := string(p.Err.Contents())
		Expect(said).To(ContainSubstring(filepath.Join(u.dir, ".the-loop", "cli-config.yaml") + " cannot be used:\n"))
		Expect(said).To(ContainSubstring(`standingSessions.sessions[1].name (4:13): "a" is the name of standingSessions.sessions[0].name (3:13) already`))
		Expect(said).To(ContainSubstring("standingSessions.sessions[2].promptFile (5:40): prompt is set too, at 5:25"))
		left, err := devcluster.Processes(filepath.Join(u.dir, "control-plane"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
		Expect(u.panePID()).To(Equal(pid))

		down := env.Program("the-loop", u.environment(), "down", "--state-dir", u.dir)
		Eventually(down.Session, 20*time.Second).Should(gexec.Exit(0))
		Expect(down.Out).To(gbytes.Say("ended session loop-standing-hello"))
		Expect(syscall.Kill(pid, 0)).NotTo(Succeed())
	})

	It("refuses a file that is named and not there", func() {
		u := newUpState()
		p := u.up("--config", filepath.Join(u.dir, "missing.yaml"))
		Eventually(p.Session, 20*time.Second).Should(gexec.Exit(2))
		Expect(p.Err).To(gbytes.Say("configuration file of --config cannot be read: open .*missing.yaml"))
		Expect(u.socket).NotTo(BeAnExistingFile())
	})

	It("C160 C163 C178 starts what is to be started, again after an end of everything, and nothing else", func() {
		u := newUpState()
		file := u.declare(`standingSessions:
  enabled: true
  sessions:
    - {name: auto, prompt: Say hello.}
    - {name: manual, autoStart: false}
    - {name: unreadable, promptFile: /nonexistent/brief.md}
`)
		p := u.up("--sample=false")
		isReady(p)
		Expect(p.Err).To(gbytes.Say("configuration file read.*" + file))
		Expect(string(p.Out.Contents())).To(ContainSubstring("declared by " + file + ":\n  auto is started\n  manual is not started: autoStart is false\n"))
		u.becomes("auto", "Running")
		u.becomes("manual", "Stopped")
		u.becomes("unreadable", "PromptUnreadable")
		u.kubectl("delete", "standing", "unreadable")

		By("a person starting one, and creating two")
		u.kubectl("patch", "standing", "manual", "--type=merge", "-p", `{"spec":{"state":"Running"}}`)
		for name, auto := range map[string]string{"back": "true", "gone": "false"} {
			u.kubectl("create", "-f", u.write(name+".yaml", "apiVersion: theloop.dev/v1alpha1\nkind: StandingSession\nmetadata: {name: "+name+"}\nspec: {autoStart: "+auto+"}\n"))
			u.becomes(name, "Running")
		}
		u.becomes("manual", "Running")
		before := u.lives()
		Expect(before).To(And(HaveLen(4), HaveKey("auto"), HaveKey("manual"), HaveKey("back"), HaveKey("gone")))

		By("taking everything over as it is")
		p.Stop()
		u.declare("standingSessions:\n  enabled: true\n  sessions:\n    - {name: auto, prompt: Say hello.}\n    - {name: manual, autoStart: false}\n")
		p = u.up("--sample=false")
		isReady(p)
		for name := range before {
			u.becomes(name, "Running")
		}
		Expect(u.lives()).To(Equal(before))

		By("the-loop restart: down, and up again")
		conversation := u.kubectl("get", "standing", "back", "-o", "jsonpath={.status.conversationID}")
		out, err := u.down()
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(u.lives()).To(BeEmpty())
		p = u.up("--sample=false")
		isReady(p)
		u.becomes("auto", "Running")
		u.becomes("back", "Running")
		u.becomes("manual", "Stopped")
		u.becomes("gone", "Stopped")
		Expect(u.lives()).To(And(HaveLen(2), HaveKey("auto"), HaveKey("back")))
		u.kubectl("wait", "--for=condition=Resumed", "standing/back", "--timeout=30s")
		Expect(u.kubectl("get", "standing", "back", "-o", "jsonpath={.status.conversationID}")).To(Equal(conversation))

		By("the block not being enabled any more")
		u.declare("standingSessions:\n  sessions:\n    - {name: auto, prompt: Say hello.}\n    - {name: manual, autoStart: false}\n")
		out, err = u.down()
		Expect(err).NotTo(HaveOccurred(), out)
		p = u.up("--sample=false")
		isReady(p)
		u.becomes("back", "Running")
		u.becomes("auto", "Stopped")
		u.becomes("manual", "Stopped")
		Expect(u.lives()).To(And(HaveLen(1), HaveKey("back")))
		p.Stop()
	})
})

// write makes a file below the directory of u.
func (u *upState) write(name, text string) string {
	GinkgoHelper()
	path := filepath.Join(u.dir, name)
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}
