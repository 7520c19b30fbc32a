//go:build linux

package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

var _ = with("The memory of the server", func(bin string) {
	It("T33: is bounded by its panes and the lines of their history, however much they print", func() {
		const panes, lines = 4, 500
		f := started(bin, func(c *Config) { c.HistoryLimit = lines })
		before, err := f.Usage(f.snapshot())
		Expect(err).NotTo(HaveOccurred())
		Expect(before.Budget).To(BeZero())
		Expect(before.Resident).To(BeNumerically(">", 1<<20))

		// The costliest line there is: every character has a colour of its own, and none is ASCII.
		const prints = `BEGIN { for (i = 0; i < 200; i++) s = s sprintf("\033[38;2;%d;10;200m\xc3\xa9", i); for (n = 0; n < 2500; n++) print s; print "\033[0mDONE"; fflush(); system("exec sleep 300") }`
		var all []Target
		for i := range panes {
			all = append(all, f.spawn(fmt.Sprintf("prints%d", i), "/usr/bin/awk", prints))
		}
		for _, t := range all {
			Eventually(func() string { return f.person("capture-pane", "-p", "-t", t.PaneID) }).WithTimeout(2 * time.Minute).Should(ContainSubstring("DONE"))
			Expect(strconv.Atoi(f.person("display-message", "-p", "-t", t.PaneID, "#{history_size}"))).To(
				And(BeNumerically(">", lines/2), BeNumerically("<=", lines)))
		}
		after, err := f.Usage(f.snapshot())
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Budget).To(Equal(panes * f.HistoryBudget(200)))
		used := after.Resident - before.Resident
		Expect(used).To(BeNumerically("<=", after.Budget))
		Expect(used).To(BeNumerically(">", after.Budget/3), "the budget says something")
	})

	It("T33: is the last to be taken away where the kernel lets us say so", func() {
		f := started(bin)
		score := func(pid int) int {
			text, err := os.ReadFile(procPath(pid, "oom_score_adj"))
			Expect(err).NotTo(HaveOccurred())
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			Expect(err).NotTo(HaveOccurred())
			return n
		}
		sleeper := exec.Command("/bin/sleep", "300")
		Expect(sleeper.Start()).To(Succeed())
		DeferCleanup(func() {
			_ = sleeper.Process.Kill()
			_ = sleeper.Wait()
		})
		want := score(os.Getpid())
		if os.WriteFile(procPath(sleeper.Process.Pid, "oom_score_adj"), []byte(strconv.Itoa(serverScore)), 0) == nil {
			want = serverScore
		}
		Expect(score(f.epoch.PID)).To(Equal(want))
	})
})
