package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// ports are the TCP ports on 127.0.0.1.
type ports struct {
	Etcd      int `json:"etcd"`
	APIServer int `json:"apiserver"`
}

// choosePorts returns the ports to use: those asked for, else those recorded in
// the directory, else free ones. fresh says that all of them were free choices,
// so that others may be tried when one is taken meanwhile.
func choosePorts(d layout, o Options) (p ports, fresh bool, err error) {
	recorded, err := readPorts(d)
	if err != nil {
		return ports{}, false, err
	}
	fresh = true
	for _, c := range []struct {
		what            string
		asked, recorded int
		out, other      *int
	}{
		{"etcd", o.EtcdPort, recorded.Etcd, &p.Etcd, &p.APIServer},
		{"the API server", o.APIServerPort, recorded.APIServer, &p.APIServer, &p.Etcd},
	} {
		switch {
		case c.asked != 0:
			fresh = false
			*c.out = c.asked
			err = checkPort(c.what, c.asked, "end that process, or choose another port")
		case c.recorded != 0 && c.recorded != *c.other:
			fresh = false
			*c.out = c.recorded
			err = checkPort(c.what, c.recorded, fmt.Sprintf("it is the port that the kubeconfigs of %s use, so it is not moved: "+
				"end that process, or remove %s to have new ports chosen and then use the new %s", string(d), d.ports(), d.kubeconfig()))
		default:
			*c.out, err = freePort(*c.other)
		}
		if err != nil {
			return ports{}, false, err
		}
	}
	return p, fresh, nil
}

func readPorts(d layout) (ports, error) {
	var p ports
	b, err := os.ReadFile(d.ports())
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && (p.Etcd < 0 || p.Etcd > 65535 || p.APIServer < 0 || p.APIServer > 65535) {
		err = fmt.Errorf("ports %d and %d are out of range", p.Etcd, p.APIServer)
	}
	if err != nil {
		return ports{}, fmt.Errorf("cannot read the recorded ports in %s: %w: remove the file to have new ports chosen", d.ports(), err)
	}
	return p, nil
}

func writePorts(d layout, p ports) error {
	if old, err := readPorts(d); err == nil && old == p {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode the ports: %w", err)
	}
	if err := durable.Write(d.ports(), append(b, '\n')); err != nil {
		return d.explain(err)
	}
	return nil
}

// checkPort fails when nobody could listen on the port now.
func checkPort(what string, port int, remedy string) error {
	err := tryListen(port)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d of %s on 127.0.0.1 is taken by %s: %s", port, what, portHolder(port), remedy)
	}
	return fmt.Errorf("%s cannot listen on port %d of 127.0.0.1: %w: choose another port (those below 1024 need root)", what, port, err)
}

func tryListen(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// lowestPort is the first that freePort considers: above the well-known services.
const lowestPort = 20000

// freePort picks a port that is free now and not other. It prefers those that
// the kernel does not hand out for outgoing connections: the port is kept for
// the directory's life, and a browser must not hold it at the next start.
func freePort(other int) (int, error) {
	if high := firstOutgoingPort(); high > lowestPort {
		for range 100 {
			port := lowestPort + rand.IntN(high-lowestPort)
			if port != other && tryListen(port) == nil {
				return port, nil
			}
		}
	}
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("no free port on 127.0.0.1: %w: is the loopback interface up?", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err == nil && port != other {
			return port, nil
		}
	}
	return 0, errors.New("no free port on 127.0.0.1: end some servers on this machine")
}
