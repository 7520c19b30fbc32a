//go:build !linux

package tmux

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Sessions are hosted on Linux only: New refuses elsewhere. What is here lets programs
// compile that use the package for its types.

var errLinuxOnly = errors.New("tmux: sessions can be hosted on Linux only")

type process struct{ pid int }

func openProcess(int) (*process, error)             { return nil, errLinuxOnly }
func (p *process) signal(syscall.Signal) error      { return errLinuxOnly }
func (p *process) ended(time.Duration) bool         { return false }
func (p *process) close()                           {}
func processAlive(int, uint64) bool                 { return false }
func procStat(int) (byte, uint64, error)            { return 0, 0, errLinuxOnly }
func processAge(uint64) time.Duration               { return 0 }
func processExe(int) string                         { return "" }
func findServer(string) (int, uint64, bool)         { return 0, 0, false }
func peerPID(string) (int, error)                   { return 0, errLinuxOnly }
func detached() *syscall.SysProcAttr                { return nil }
func dieWithUs() *syscall.SysProcAttr               { return nil }
func raiseFiles(int, uint64) (uint64, error)        { return 0, errLinuxOnly }
func signalName(sig syscall.Signal) string          { return strconv.Itoa(int(sig)) }
func processDir(int, int) (os.FileInfo, bool, bool) { return nil, false, false }

// IsServer knows nothing here.
func IsServer(int) bool { return false }

func resident(int) (int64, error) { return 0, errLinuxOnly }

func spare(int) {}

// Sweep finds nothing here.
func Sweep(string, ...int) ([]int, error) { return nil, errLinuxOnly }

// Children finds nothing here.
func Children(string, time.Duration, time.Duration, ...int) ([]Child, error) {
	return nil, errLinuxOnly
}

// EndProcesses ends nothing here.
func EndProcesses(context.Context, string, time.Duration, ...int) ([]int, error) {
	return nil, errLinuxOnly
}

type watcher struct{}

func newWatcher(func()) (*watcher, error) { return nil, errLinuxOnly }
func (w *watcher) watch([]int)            {}
func (w *watcher) run()                   {}
func (w *watcher) stop()                  {}
