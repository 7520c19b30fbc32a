//go:build linux

package tmux

import (
	"time"
)

func diagLoop(f *fixture, name string) {
			for range 400 {
				s := f.session(name)
				if !s.Live() { return }
				time.Sleep(5*time.Millisecond)
			}
			Fail("stuck")
}

var _ = Describe("DIAG", func() {
		It("DV1", func() {
			f := started("tmux")
			f.spawn("dead", "/bin/sh", "-c", "exit 1")
			f.died("dead")
		})
		It("DV2", func() {
			f := started("tmux")
			f.spawn("a", "/bin/sh", "-c", "exit 1")
			f.died("a")
		})
		It("DV3", func() {
			f := started("tmux")
			f.spawn("dead", "/bin/sh", "-c", "exit 1")
			diagLoop(f, "dead")
		})
		It("DV4", func() {
			f := started("tmux")
			f.spawn("a", "/bin/sh", "-c", "exit 1")
			diagLoop(f, "a")
		})
})
