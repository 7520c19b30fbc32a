package main

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// childArg is the first argument of a program that was started as a child of
// another one; the kind follows.
const childArg = "fakeharness-child"

// childKinds are the ways in which children try to outlive their parent.
var childKinds = []string{"normal", "pgrp", "setsid", "nohup", "daemon"}

// childLife bounds a child that nobody ends.
const childLife = 5 * time.Minute

// startChildren starts a child of each kind, all kinds when none is named.
func (a *app) startChildren(kinds []string) {
	if len(kinds) == 0 {
		kinds = childKinds
	}
	for _, kind := range kinds {
		if !slices.Contains(childKinds, kind) {
			continue
		}
		if err := startChild(kind); err != nil {
			a.log.event("child-failed", fields{"kind": kind, "error": err.Error()})
		}
	}
}

// startChild starts this program again as a child.
func startChild(kind string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, childArg, kind)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	switch kind {
	case "pgrp":
		cmd.SysProcAttr.Setpgid = true
	case "setsid", "daemon", "daemon-inner":
		cmd.SysProcAttr.Setsid = true
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// runChild is a child: it logs that it lives and ignores every request to end. A
// daemon starts another child in a session of its own and ends, so that the other
// loses its parent.
func runChild(kind string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	if kind == "daemon" {
		if err := startChild("daemon-inner"); err != nil {
			return 1
		}
		return 0
	}
	log, err := openLog(os.Getenv("FAKEHARNESS_LOG"))
	if err != nil {
		return 1
	}
	log.event("child", fields{"kind": kind, "parent": os.Getppid()})
	time.Sleep(childLife)
	return 0
}
