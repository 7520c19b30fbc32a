package devcluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sleeper starts a process that is nobody's control plane.
func sleeper() *exec.Cmd {
	GinkgoHelper()
	cmd := exec.Command("sleep", "60")
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func stateOf(pid int) state {
	GinkgoHelper()
	_, s, err := inspect(pid)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// recordOf is the truth about a running process, under a name.
func recordOf(name string, pid int) record {
	GinkgoHelper()
	r, s, err := inspect(pid)
	Expect(err).NotTo(HaveOccurred())
	Expect(s).To(Equal(stateRunning))
	r.Name = name
	return r
}

func saveRecord(d layout, r record) {
	GinkgoHelper()
	b, err := json.Marshal(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(d.record(r.Name), b, 0o600)).To(Succeed())
}

var _ = Describe("What a crash leaves", func() {
	It("is nothing when the process is killed, and the next start works", func(ctx SpecContext) {
		dir := newDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperDir+"="+dir, helperBin+"="+binDir)
		out, err := cmd.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Start()).To(Succeed())
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		Expect(line).To(Equal("ready\n"))

		_, err = Start(ctx, testOptions(dir))
		Expect(err).To(MatchError(ContainSubstring("process %d:", cmd.Process.Pid)))
		ps, err := Processes(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(ps).To(HaveLen(2))

		Expect(cmd.Process.Kill()).To(Succeed())
		for _, p := range ps {
			Eventually(stateOf).WithArguments(p.PID).ShouldNot(Equal(stateRunning), p.Name)
		}
		Expect(Processes(dir)).To(BeEmpty())
		c := start(testOptions(dir))
		_, err = client(c.Config()).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(time.Minute))

	It("is ended by the next start, when it runs after all", func() {
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		cmd := sleeper()
		saveRecord(d, recordOf(etcdName, cmd.Process.Pid))
		Expect(Processes(string(d))).To(Equal([]Process{{Name: etcdName, PID: cmd.Process.Pid}}))
		o := testOptions(string(d))
		said := ""
		o.Log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" }
		start(o)
		Expect(said).To(ContainSubstring("ended etcd (pid %d), which an earlier run had left", cmd.Process.Pid))
		Expect(cmd.Wait()).To(MatchError("signal: terminated"))
	})

	It("is ended by StopProcesses, by force if need be, and nothing else is", func(ctx SpecContext) {
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		lock, err := lockDir(ctx, d)
		Expect(err).NotTo(HaveOccurred())
		lock.Release()
		obedient, bystander := sleeper(), sleeper()
		deaf := exec.Command("/bin/sh", "-c", `trap "" TERM; echo; while :; do sleep 0.1; done`)
		out, err := deaf.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(deaf.Start()).To(Succeed())
		_, err = bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		saveRecord(d, recordOf(etcdName, obedient.Process.Pid))
		saveRecord(d, recordOf(apiserverName, deaf.Process.Pid))

		begin := time.Now()
		Expect(StopProcesses(ctx, string(d))).To(Equal([]Process{
			{Name: apiserverName, PID: deaf.Process.Pid}, {Name: etcdName, PID: obedient.Process.Pid},
		}))
		Expect(time.Since(begin)).To(BeNumerically("<", 5*time.Second))
		Expect(deaf.Wait()).To(MatchError("signal: killed"))
		Expect(obedient.Wait()).To(MatchError("signal: terminated"))
		Expect(stateOf(bystander.Process.Pid)).To(Equal(stateRunning))
		Expect(filepath.Glob(d.run("*.json"))).To(BeEmpty())
		Expect(StopProcesses(ctx, string(d))).To(BeEmpty())
	})

	DescribeTable("is not believed by its pid alone",
		func(ctx SpecContext, change func(*record)) {
			d := layout(newDir())
			Expect(d.make()).To(Succeed())
			lock, err := lockDir(ctx, d)
			Expect(err).NotTo(HaveOccurred())
			lock.Release()
			cmd := sleeper()
			r := recordOf(etcdName, cmd.Process.Pid)
			change(&r)
			saveRecord(d, r)
			Expect(Processes(string(d))).To(BeEmpty())
			Expect(StopProcesses(ctx, string(d))).To(BeEmpty())
			Consistently(stateOf).WithArguments(cmd.Process.Pid).WithTimeout(100*time.Millisecond).Should(Equal(stateRunning), "it was signalled")
			Expect(d.record(etcdName)).NotTo(BeAnExistingFile(), "the stale record")
		},
		Entry("another start time: the pid was recycled", func(r *record) { r.StartTime-- }),
		Entry("another executable", func(r *record) { r.Exe = "/usr/bin/etcd" }),
		Entry("another boot", func(r *record) { r.BootID = "00000000-0000-0000-0000-000000000000" }),
	)

	It("is not believed when the record is damaged", func(ctx SpecContext) {
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		for _, text := range []string{"", "{", `{"pid":-1}`, `{"pid":1}`, `{"pid":0}`} {
			Expect(os.WriteFile(d.record(etcdName), []byte(text), 0o600)).To(Succeed())
			Expect(Processes(string(d))).To(BeEmpty(), text)
			Expect(endRecorded(ctx, d)).To(BeEmpty(), text)
		}
	})

	It("is nothing where nothing ever ran, and no file is made there", func(ctx SpecContext) {
		dir := newDir()
		Expect(Processes(dir)).To(BeEmpty())
		Expect(StopProcesses(ctx, dir)).To(BeEmpty())
		Expect(dir).NotTo(BeAnExistingFile())
	})

	It("does not contain a zombie", func() {
		cmd := exec.Command("true")
		Expect(cmd.Start()).To(Succeed())
		Eventually(stateOf).WithArguments(cmd.Process.Pid).Should(Equal(stateGone))
		Expect(cmd.Wait()).To(Succeed())
	})
})
