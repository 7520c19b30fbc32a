package main

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is one process, told apart from a later one with the same pid by when it
// started (in clock ticks since the boot).
type process struct {
	pid     int
	started uint64
}

// descendants are all living processes below root in the tree of parents, parents
// before their children. Ended ones that wait to be reaped are not among them, but
// their children are.
func descendants(root int) []process {
	type entry struct {
		process
		zombie bool
	}
	children := map[int][]entry{}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if st, ok := readStat(pid); ok {
			children[st.parent] = append(children[st.parent], entry{process{pid, st.started}, st.state == 'Z' || st.state == 'X'})
		}
	}
	var out []process
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, c := range children[todo[0]] {
			todo = append(todo, c.pid)
			if !c.zombie {
				out = append(out, c.process)
			}
		}
	}
	return out
}

// stat is what is needed of /proc/<pid>/stat.
type stat struct {
	state   byte
	parent  int
	started uint64
}

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	// The name stands in parentheses and may itself contain blanks and parentheses.
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, false
	}
	const parentField, startedField = 1, 19 // counted from the state, field 3 of proc(5)
	f := bytes.Fields(data[end+1:])
	if len(f) <= startedField {
		return stat{}, false
	}
	parent, err1 := strconv.Atoi(string(f[parentField]))
	started, err2 := strconv.ParseUint(string(f[startedField]), 10, 64)
	return stat{state: f[0][0], parent: parent, started: started}, err1 == nil && err2 == nil
}

// signal sends a signal to exactly this process: its pid may have been given to
// another one meanwhile, which a descriptor and a second look exclude.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if st, ok := readStat(p.pid); !ok || st.started != p.started {
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0)
}

func pids(list []process) []int {
	out := make([]int, len(list))
	for i, p := range list {
		out[i] = p.pid
	}
	return out
}
