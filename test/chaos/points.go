package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// points answers programs that ask what to do at a point.
type points struct {
	path     string
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	armed map[string]*trap
	hits  map[string]int
}

// trap is what is to happen at a point.
type trap struct {
	answer string
	left   int
	// hit gets the pid of each program that got the answer.
	hit chan int
}

func listen(path string) (*points, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	p := &points{path: path, listener: l, armed: map[string]*trap{}, hits: map[string]int{}}
	p.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(c) })
		}
	})
	return p, nil
}

func (p *points) close() {
	_ = p.listener.Close()
	p.serving.Wait()
}

func (p *points) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	pid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	answer := "go"
	p.mu.Lock()
	p.hits[name]++
	if t := p.armed[name]; t != nil && t.left > 0 {
		t.left--
		answer = t.answer
		n, _ := strconv.Atoi(pid)
		select {
		case t.hit <- n:
		default:
		}
	}
	p.mu.Unlock()
	_, _ = fmt.Fprintln(c, answer)
}

// arm has the next programs that come by a point get an answer, that many times.
func (p *points) arm(name, answer string, times int) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &trap{answer, times, make(chan int, 1)}
	p.armed[name] = t
	return t
}

// disarm has them go on again.
func (p *points) disarm(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.armed, name)
}

// setClock puts the clock off by whole seconds, 0 right.
func (p *points) setClock(seconds int) error {
	path := p.path + ".clock"
	if seconds == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(seconds)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
