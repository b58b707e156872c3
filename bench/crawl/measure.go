package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
)

// A plan is one process's work, as it is handed to it.
type plan struct {
	Crawler string // empty: the server
	Web     web
	Address string // of the server
	Workers int    // requests at a time
	Dir     string // for what the crawl leaves
	Spider  string // directory with spider-rs, as npm installs it; "" for none
	Profile string // file for a CPU profile; "" for none
}

// childArg is the first argument of a process that gets a plan as its second.
const childArg = "child"

// child does the work of a plan.
func child(arg string) error {
	var p plan
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	if p.Crawler == "" {
		return serve(p.Web)
	}
	for _, c := range crawlers() {
		if c.name == p.Crawler {
			return program.Profiled(p.Profile, func() error { return c.crawl(p) })
		}
	}
	return fmt.Errorf("there is no crawler %q", p.Crawler)
}

// start prepares the process of a plan.
func (p plan) start() (*exec.Cmd, error) {
	arg, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd, err := program.Again(childArg, string(arg))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// A farm is the server's process, seen from outside.
type farm struct {
	address string
	cmd     *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
}

func startFarm(w web) (*farm, error) {
	cmd, err := plan{Web: w}.start()
	if err != nil {
		return nil, err
	}
	ask, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &farm{cmd: cmd, ask: ask, answers: bufio.NewReader(out)}
	line, err := f.answers.ReadString('\n')
	f.address = strings.TrimSpace(line)
	return f, err
}

// take returns what the server was asked for since it was last asked.
func (f *farm) take() (t tally, err error) {
	if _, err := io.WriteString(f.ask, "\n"); err != nil {
		return t, err
	}
	line, err := f.answers.ReadBytes('\n')
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(line, &t)
}

// stop ends the process.
func (f *farm) stop() error {
	f.ask.Close()
	return f.cmd.Wait()
}

// figures are those of one run.
type figures struct {
	CPU   float64 // seconds, user and system, for 1,000 pages asked
	Speed float64 // pages asked a second
	RSS   float64 // peak, MiB; 0 if the system is not Linux
	Asked float64 // requests for each page
}

// measure runs a crawler in a process of its own, and checks what the server saw.
func (c crawler) measure(p plan, f *farm) (figures, error) {
	p.Crawler, p.Address = c.name, f.address
	if p.Profile != "" {
		p.Profile = filepath.Join(p.Profile, strings.NewReplacer(" ", "-", "/", "-").Replace(c.name))
	}
	start := p.start
	if c.program != nil {
		start = func() (*exec.Cmd, error) { return c.program(p) }
	}
	cmd, err := start()
	if err != nil {
		return figures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return figures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	spent := time.Since(begin)
	t, err := f.take()
	if err == nil {
		err = c.check(p.Web, t)
	}
	if err != nil {
		return figures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	state := cmd.ProcessState
	cpu := state.UserTime() + state.SystemTime()
	return figures{
		CPU: cpu.Seconds() / float64(t.Asked) * 1000, Speed: float64(t.Asked) / spent.Seconds(),
		RSS:   peakRSS(state),
		Asked: float64(t.Asked) / float64(t.Distinct),
	}, nil
}

// check returns what a crawler did wrong: it must have asked for each page, once
// unless it is known not to, and for nothing else but robots.txt.
func (c crawler) check(w web, t tally) error {
	switch {
	case t.Distinct != w.size():
		return fmt.Errorf("%d pages were asked for, want %d", t.Distinct, w.size())
	case t.Asked != t.Distinct && !c.twice:
		return fmt.Errorf("%d pages were asked for in %d requests, want each once", t.Distinct, t.Asked)
	case t.Strange > 0:
		return fmt.Errorf("%d requests were for pages that are not", t.Strange)
	case t.Robots != w.Hosts && !c.blind:
		return fmt.Errorf("robots.txt of %d hosts was asked for, want %d", t.Robots, w.Hosts)
	}
	return nil
}
