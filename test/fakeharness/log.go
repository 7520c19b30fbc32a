package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// fields are what a line of the log says besides its time and its event.
type fields map[string]any

// eventLog is the record that tests assert on: one JSON object a line, each
// written at once, so that nothing is lost when the program dies.
type eventLog struct {
	mu   sync.Mutex
	file *os.File // nil: nothing is logged
}

// openLog opens the log for appending; several programs may share one.
func openLog(path string) (*eventLog, error) {
	if path == "" {
		return &eventLog{}, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("FAKEHARNESS_LOG: %w", err)
	}
	return &eventLog{file: f}, nil
}

// event writes one line {"t":…,"pid":…,"event":name, …}. A field "raw" of type
// []byte comes out in base64.
func (l *eventLog) event(name string, f fields) {
	if l.file == nil {
		return
	}
	out := fields{"t": time.Now().UTC(), "event": name, "pid": os.Getpid()}
	for k, v := range f {
		out[k] = v
	}
	line, err := json.Marshal(out)
	if err != nil {
		line = []byte(`{"event":"unloggable"}`)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(append(line, '\n'))
}
