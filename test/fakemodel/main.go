// Command fakemodel is a server that stands in for the APIs of the model vendors, so
// that a real harness can be run offline in tests and demonstrations. It speaks as much
// of them as Claude Code 2.1.332, Codex 0.171.0, opencode 1.18.33 and Gemini CLI 0.61.0
// use, and what it answers is steered by the newest text of the user (see package
// server). It prints its base URLs in the form of environment variables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/theloop-dev/the-loop/test/fakemodel/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fakemodel:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one, which is printed")
	logFile := flag.String("log", "", "file to which a JSON line is appended for each request")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	model := server.New()
	if *logFile != "" {
		f, err := os.OpenFile(*logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		model.Log = f
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("ANTHROPIC_BASE_URL=http://%[1]s\nOPENAI_BASE_URL=http://%[1]s/v1\nGOOGLE_GEMINI_BASE_URL=http://%[1]s\n", l.Addr())
	srv := model.HTTP(ctx)
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
