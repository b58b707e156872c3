package powercut

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// cutsPerDaemon is how many times the power of one daemon is cut.
const cutsPerDaemon = 3

// TestDaemonPowerCuts: the power is cut right after a daemon has confirmed that a brake is set, or
// that a project runs. Both still apply after the cut.
func TestDaemonPowerCuts(t *testing.T) {
	for i := range (*powerCuts + cutsPerCrawl - 1) / cutsPerCrawl {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, 3))
			defer m.logRepeatFlags(fmt.Sprintf("-run TestDaemonPowerCuts -cuts 1 -seed %d", seed))
			m.testDaemonCuts(rnd)
		})
	}
}

// testDaemonCuts sets a brake before each cut and starts the project before the first. After each
// cut it checks all brakes and the project.
func (m *machine) testDaemonCuts(rnd *rand.Rand) {
	projects := m.t.TempDir() // on another disk
	text := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com'}\nseeds: ['%s']\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\n", m.web.CrawlSettings.Seeds[0], m.server.Addr)
	if err := os.WriteFile(filepath.Join(projects, "p.yaml"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	want := map[string]bool{}
	for cut := range cutsPerDaemon {
		d := m.startDaemon(projects)
		d.checkState(want, cut > 0)
		host := fmt.Sprintf("braked%d.example", cut)
		_, err := d.client.SetBrake(d.ctx, host, api.BrakeRequest{Stop: true, Reason: "its owner asked"})
		if err == nil && cut == 0 {
			err = d.client.ControlProject(d.ctx, "p", api.ActionStart)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		want[host] = true
		d.kill()
		m.cutPower(rnd)
	}
	d := m.startDaemon(projects)
	d.checkState(want, true)
	d.kill()
}

// A daemonProcess is a daemon that runs on a machine.
type daemonProcess struct {
	machine *machine
	ctx     context.Context
	client  *api.Client
	cmd     *exec.Cmd
	stderr  *bytes.Buffer
}

// startDaemon starts a daemon, and returns when its API responds.
func (m *machine) startDaemon(projects string) *daemonProcess {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	listen := l.Addr().String()
	program, err2 := buildCommand()
	if err := errors.Join(l.Close(), err2); err != nil {
		m.t.Fatal(err)
	}
	s := &daemonProcess{machine: m, ctx: m.t.Context(), stderr: &bytes.Buffer{},
		client: &api.Client{Server: "http://" + listen}}
	s.cmd = exec.Command(program, "serve", "--listen", listen, "--data", m.dataDir(), "--projects", projects,
		"--log-level=error")
	s.cmd.Stderr = s.stderr
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	for deadline := time.Now().Add(runTimeout); ; time.Sleep(20 * time.Millisecond) {
		if n, err := m.disk.NodeAtPath("data/token"); err == nil {
			s.client.Token = strings.TrimSpace(string(m.disk.CurrentContent(n)))
			if _, err := s.client.Projects(s.ctx); err == nil {
				return s
			}
		}
		if time.Now().After(deadline) {
			s.kill()
			m.t.Fatalf("the daemon does not respond:\n%s", s.stderr)
		}
	}
}

// kill ends the daemon, as a power cut does.
func (s *daemonProcess) kill() {
	_ = s.cmd.Process.Kill() // the process may have ended
	_ = s.cmd.Wait()
}

// checkState checks that the brakes are on, and whether the project runs.
func (s *daemonProcess) checkState(want map[string]bool, runs bool) {
	s.machine.t.Helper()
	brakes, err := s.client.Brakes(s.ctx)
	if err != nil || len(brakes) != len(want) {
		s.machine.t.Errorf("brakes %+v, %v; want %v", brakes, err, want)
	}
	for _, b := range brakes {
		if !want[b.Host] || !b.Stop {
			s.machine.t.Errorf("brake %+v", b)
		}
	}
	all, err := s.client.Projects(s.ctx)
	switch {
	case err != nil || len(all) != 1:
		s.machine.t.Errorf("projects %+v, %v", all, err)
	case runs && all[0].State != api.StateRunning && all[0].State != api.StateDone,
		!runs && all[0].State != api.StateStopped:
		s.machine.t.Errorf("the project is %s (%s); want it running: %t", all[0].State, all[0].StateReason, runs)
	}
}
