package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A clientServerCPUTime is the CPU time of the store's clients and of the servers.
type clientServerCPUTime struct{ clients, servers time.Duration }

// minus returns the difference of two times.
func (p clientServerCPUTime) minus(q clientServerCPUTime) clientServerCPUTime {
	return clientServerCPUTime{p.clients - q.clients, p.servers - q.servers}
}

// plus returns the sum of two times.
func (p clientServerCPUTime) plus(q clientServerCPUTime) clientServerCPUTime {
	return clientServerCPUTime{p.clients + q.clients, p.servers + q.servers}
}

// clientAndServerCPUTime returns the CPU time of this process and of all servers until now.
func clientAndServerCPUTime(c *redistest.Cluster) (p clientServerCPUTime, err error) {
	if p.clients, err = processCPUTime("self"); err != nil {
		return p, err
	}
	for _, n := range c.Nodes() {
		t, err := processCPUTime(strconv.Itoa(n.PID()))
		if err != nil {
			return p, err
		}
		p.servers += t
	}
	return p, nil
}

// processCPUTime returns the user and system time of a process: proc(5), /proc/pid/stat, fields 14
// and 15, in ticks. Linux has 100 ticks per second.
func processCPUTime(pid string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the program's name, before it, may contain blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%s/stat: %q", pid, text)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%s/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100, nil
}

// usedMemory returns how many bytes a server uses, by INFO memory.
func usedMemory(n *redistest.Node) (int, error) {
	text, err := n.Do(context.Background(), "INFO", "memory")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r")
	return strconv.Atoi(number)
}
