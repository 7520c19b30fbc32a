package tmux

import (
	"os"
	"strings"
	"time"
)

// Children are the processes of a session that Sweep finds and whose age is between least
// and most, but for exclude, in the order of their pids.
func Children(uid string, least, most time.Duration, exclude ...int) ([]Child, error) {
	pids, err := Sweep(uid, exclude...)
	if err != nil {
		return nil, err
	}
	var out []Child
	for _, pid := range pids {
		_, start, err := procStat(pid)
		if err != nil {
			continue
		}
		age := processAge(start)
		if name, err := os.ReadFile(procPath(pid, "comm")); err == nil && age >= least && age <= most {
			out = append(out, Child{PID: pid, Name: strings.TrimSpace(string(name)), Age: age})
		}
	}
	return out, nil
}
