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

// cutsOfDaemon is how many power cuts one daemon has.
const cutsOfDaemon = 3

// TestDaemonPowerCuts: the power is cut right after a daemon has answered that a brake
// is on, or that a project is to run. It is so when the power is back.
func TestDaemonPowerCuts(t *testing.T) {
	for i := range (*cuts + cutsOfOne - 1) / cutsOfOne {
		seed := *seed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m, chance := newMachine(t), rand.New(rand.NewPCG(seed, 3))
			defer m.sayHowToRepeat(fmt.Sprintf("-run TestDaemonPowerCuts -cuts 1 -seed %d", seed))
			m.operate(chance)
		})
	}
}

// operate tells a daemon something before each cut, and checks all of it after the cut.
func (m *machine) operate(chance *rand.Rand) {
	projects := m.t.TempDir() // of another disk
	text := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com'}\nseeds: ['%s']\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\n", m.web.CrawlPlan.Seeds[0], m.addr)
	if err := os.WriteFile(filepath.Join(projects, "p.yaml"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	want := map[string]bool{}
	for cut := range cutsOfDaemon {
		d := m.serve(projects)
		d.check(want, cut > 0)
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
		m.cutPower(chance)
	}
	d := m.serve(projects)
	d.check(want, true)
	d.kill()
}

// A service is a daemon that runs on a machine.
type service struct {
	m      *machine
	ctx    context.Context
	client *api.Client
	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

// serve starts a daemon, and returns when it answers.
func (m *machine) serve(projects string) *service {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	listen := l.Addr().String()
	program, err2 := build()
	if err := errors.Join(l.Close(), err2); err != nil {
		m.t.Fatal(err)
	}
	s := &service{m: m, ctx: m.t.Context(), stderr: &bytes.Buffer{}, client: &api.Client{Server: "http://" + listen}}
	s.cmd = exec.Command(program, "serve", "--listen", listen, "--data", m.data(), "--projects", projects,
		"--log-level=error")
	s.cmd.Stderr = s.stderr
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	for deadline := time.Now().Add(hangs); ; time.Sleep(20 * time.Millisecond) {
		if n, err := m.disk.Find("data/token"); err == nil {
			s.client.Token = strings.TrimSpace(string(m.disk.Content(n)))
			if _, err := s.client.Projects(s.ctx); err == nil {
				return s
			}
		}
		if time.Now().After(deadline) {
			s.kill()
			m.t.Fatalf("the daemon does not answer:\n%s", s.stderr)
		}
	}
}

// kill ends the daemon, as a power cut does.
func (s *service) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}

// check checks that the brakes are on, and whether the project runs.
func (s *service) check(want map[string]bool, runs bool) {
	s.m.t.Helper()
	brakes, err := s.client.Brakes(s.ctx)
	if err != nil || len(brakes) != len(want) {
		s.m.t.Errorf("brakes %+v, %v; want %v", brakes, err, want)
	}
	for _, b := range brakes {
		if !want[b.Host] || !b.Stop {
			s.m.t.Errorf("brake %+v", b)
		}
	}
	all, err := s.client.Projects(s.ctx)
	switch {
	case err != nil || len(all) != 1:
		s.m.t.Errorf("projects %+v, %v", all, err)
	case runs && all[0].State != api.StateRunning && all[0].State != api.StateDone, !runs && all[0].State != api.StateStopped:
		s.m.t.Errorf("the project is %s (%s), should run: %t", all[0].State, all[0].StateReason, runs)
	}
}
