//go:build linux

package webterminal_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/coder/websocket"
	"github.com/creack/pty"
)

// standInVariable makes the test binary a stand-in for ttyd: its value is what it answers
// to --version. It takes ttyd's own flags, listens and serves where ttyd would, and gives
// each websocket a terminal with the command.
const standInVariable = "LOOP_TTYD_STAND_IN"

func standIn() int {
	f := flag.NewFlagSet("ttyd", flag.ContinueOnError)
	version := f.Bool("version", false, "")
	socket := f.String("i", "", "")
	base := f.String("b", "", "")
	writable := f.Bool("W", false, "")
	f.Bool("O", false, "")
	f.Int("m", 0, "")
	f.Int("P", 0, "")
	f.Func("t", "", func(string) error { return nil })
	if f.Parse(os.Args[1:]) != nil {
		return 1
	}
	if *version {
		fmt.Println(os.Getenv(standInVariable))
		return 0
	}
	if file := os.Getenv("LOOP_TTYD_LOG"); file != "" {
		b, _ := json.Marshal(os.Args)
		log, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(log, os.Getpid(), string(b))
			_ = log.Close()
		}
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc(*base+"/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "frame-ancestors *")
		fmt.Fprintf(w, "<html>stand-in of ttyd, cookie=%q</html>", r.Header.Get("Cookie"))
	})
	mux.HandleFunc(*base+"/ws", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("Origin"), "//"+r.Host) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"tty"}})
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		serveTTY(r.Context(), conn, f.Args(), *writable)
	})
	_ = http.Serve(listener, mux)
	return 1
}

// serveTTY gives a websocket a terminal.
func serveTTY(ctx context.Context, conn *websocket.Conn, argv []string, writable bool) {
	cmd := exec.Command(argv[0], argv[1:]...)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		return
	}
	go func() {
		for {
			_, keys, err := conn.Read(ctx)
			if err != nil {
				_ = screen.Close()
				return
			}
			if writable {
				_, _ = screen.Write(keys)
			}
		}
	}()
	buf := make([]byte, 4096)
	for {
		n, err := screen.Read(buf)
		if err != nil || conn.Write(ctx, websocket.MessageBinary, buf[:n]) != nil {
			break
		}
	}
	_ = cmd.Wait()
}
