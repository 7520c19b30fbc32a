package hook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// MaxSocketPath is the longest path of a Unix socket on Linux, in bytes.
	MaxSocketPath = 107
	// MaxPoke is the largest payload of a poke, in bytes; Listen cuts longer ones.
	MaxPoke = 4096
)

// CheckSocketPath refuses a path that cannot be a Unix socket's, naming the limit.
func CheckSocketPath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("socket path %q is not absolute", path)
	}
	if len(path) > MaxSocketPath {
		return fmt.Errorf("socket path %q has %d bytes, the limit is %d: choose a shorter state directory",
			path, len(path), MaxSocketPath)
	}
	return nil
}

// Poke sends the payload to the datagram socket and never waits: with nobody
// behind the socket, or with a listener that is stopped and whose queue is full, it
// fails at once. The caller ignores the error, since the journal holds the note.
func Poke(socket, payload string) error {
	if err := CheckSocketPath(socket); err != nil {
		return err
	}
	if len(payload) > MaxPoke {
		return fmt.Errorf("payload of %d bytes, the limit is %d", len(payload), MaxPoke)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	err = syscall.Sendto(fd, []byte(payload), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, &syscall.SockaddrUnix{Name: socket})
	if err != nil {
		return fmt.Errorf("poking %s: %w", socket, err)
	}
	return nil
}

// Listen binds the datagram socket (mode 0600 from its first moment) and gives the
// payload of each poke until ctx ends (or the socket fails, which was never seen);
// then it closes the channel and removes the socket. A socket file that nobody is behind is replaced; one with a listener, or
// any other file, is refused. A reader that falls behind loses nothing that
// matters: pokes that do not fit are dropped by their senders, and the journal has
// the notes.
func Listen(ctx context.Context, socket string) (<-chan string, error) {
	if err := CheckSocketPath(socket); err != nil {
		return nil, err
	}
	conn, err := bind(ctx, socket)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeStale(socket); err != nil {
			return nil, err
		}
		conn, err = bind(ctx, socket)
	}
	if err != nil {
		return nil, fmt.Errorf("binding the hook socket: %w", err)
	}
	ours, err := os.Lstat(socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("binding the hook socket: %w", err), conn.Close())
	}

	pokes := make(chan string, 64)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	go func() {
		defer close(pokes)
		defer stop()
		receive(ctx, conn, pokes)
		if now, err := os.Lstat(socket); err == nil && os.SameFile(ours, now) {
			_ = os.Remove(socket)
		}
		_ = conn.Close()
	}()
	return pokes, nil
}

// receive passes datagrams on until ctx ends or the socket fails.
func receive(ctx context.Context, conn net.PacketConn, pokes chan<- string) {
	buf := make([]byte, MaxPoke)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil || ctx.Err() != nil {
			return
		}
		select {
		case pokes <- string(buf[:n]):
		case <-ctx.Done():
			return
		}
	}
}

// bind creates the socket file. The mode is set on the socket before it gets its
// name, which Linux carries over to the file, so that it is never open to others.
func bind(ctx context.Context, socket string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmod error
		err := c.Control(func(fd uintptr) { chmod = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, chmod)
	}}
	return lc.ListenPacket(ctx, "unixgram", socket)
}

// removeStale removes the socket file when nobody is behind it.
func removeStale(socket string) error {
	st, err := os.Lstat(socket)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at the hook socket: %w", err)
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket: remove it or choose another path", socket)
	}
	conn, err := net.Dial("unixgram", socket)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("another process listens on %s: stop it or choose another path", socket)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("looking at the hook socket %s: %w", socket, err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the stale hook socket: %w", err)
	}
	return nil
}
