package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// configPath is the program's own configuration, of which it knows the trust in
// directories; other keys are kept.
func (a *app) configPath() string { return filepath.Join(a.home, ".claude.json") }

func (a *app) readConfig() map[string]any {
	out := map[string]any{}
	data, err := os.ReadFile(a.configPath())
	if err == nil {
		_ = json.Unmarshal(data, &out)
	}
	return out
}

// trusted reports whether the directory was trusted: by its exact real path.
func (a *app) trusted() bool {
	projects, _ := a.readConfig()["projects"].(map[string]any)
	project, _ := projects[realPath(a.cwd)].(map[string]any)
	accepted, _ := project["hasTrustDialogAccepted"].(bool)
	return accepted
}

func (a *app) trust() {
	config := a.readConfig()
	projects, ok := config["projects"].(map[string]any)
	if !ok {
		projects = map[string]any{}
		config["projects"] = projects
	}
	project, ok := projects[realPath(a.cwd)].(map[string]any)
	if !ok {
		project = map[string]any{}
		projects[realPath(a.cwd)] = project
	}
	project["hasTrustDialogAccepted"] = true
	data, _ := json.MarshalIndent(config, "", "  ")
	_ = writeAtomically(a.configPath(), data)
}

func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// cutConfig leaves the configuration as a writer does that ends after so many bytes.
func (a *app) cutConfig(bytes int) {
	data, _ := os.ReadFile(a.configPath())
	_ = os.WriteFile(a.configPath(), data[:min(bytes, len(data))], 0o600)
}

// applyToConfig starts what a behaviour does with the shared configuration.
func (a *app) applyToConfig(m modes) {
	times, _ := m.number("rewrite-config-times")
	if hz, ok := m.numberOr("rewrite-config", 100); ok {
		go a.rewriteConfig(hz, times, false)
	}
	if hz, ok := m.numberOr("rewrite-config-torn", 100); ok {
		go a.rewriteConfig(hz, times, true)
	}
	if bytes, ok := m.number("cut-config"); ok {
		a.cutConfig(bytes)
	}
}

// rewriteConfig reads and rewrites the configuration hz times a second, so many times, 0 for
// ever. Torn, it writes into the file itself in two halves.
func (a *app) rewriteConfig(hz, times int, torn bool) {
	const most = 1000
	every := time.Second / time.Duration(max(1, min(hz, most)))
	for n := 1; times == 0 || n <= times; n++ {
		time.Sleep(every)
		config := a.readConfig()
		config["rewrites-"+strconv.Itoa(os.Getpid())] = n
		data, _ := json.MarshalIndent(config, "", "  ")
		if !torn {
			_ = writeAtomically(a.configPath(), data)
			continue
		}
		f, err := os.OpenFile(a.configPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			continue
		}
		_, _ = f.Write(data[:len(data)/2])
		time.Sleep(every / 2)
		_, _ = f.Write(data[len(data)/2:])
		_ = f.Close()
	}
	a.log.event("rewritten", fields{"times": times})
}

// crash ends the program by SIGKILL.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
