package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// daemon starts a daemon with three projects and brakes on two hosts, and kills it.
func (g *generator) daemon() error {
	dir := filepath.Join(g.temp, "daemon")
	l, err := g.start("daemon")
	if err != nil {
		return err
	}
	if err := g.writeProjects(filepath.Join(dir, "projects"), l.servers); err != nil {
		return err
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	l.process.Args = append(l.process.Args, "serve", "--listen", listen, "--data", data, "--projects",
		filepath.Join(dir, "projects"), "--log-level=error")
	if err := l.process.Start(); err != nil {
		return err
	}
	if err := g.operate(listen, data, l); err != nil {
		l.process.Process.Kill()
		return fmt.Errorf("%w\n%s", err, &l.stderr)
	}
	killed, err := l.kill(500 * time.Millisecond)
	if err != nil {
		return err
	}
	return g.save("daemon", dir, killed, l.web)
}

// writeProjects writes the project files of the daemon.
func (g *generator) writeProjects(dir string, s servers) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var to []string
	for _, flag := range s.connectTo() {
		to = append(to, "'"+strings.TrimPrefix(flag, "--connect-to=")+"'")
	}
	for _, name := range []string{"going", "paused", "stopped"} {
		text, err := os.ReadFile(filepath.Join(g.dir, "projects", name+".yaml"))
		if err != nil {
			return err
		}
		text = []byte(strings.ReplaceAll(string(text), "$CONNECT_TO", strings.Join(to, ", ")))
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// operate sets the brakes, starts the projects, pauses one and stops one.
func (g *generator) operate(listen, data string, l *life) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := &api.Client{Server: "http://" + listen}
	for c.Token == "" { // until the daemon runs
		token, err := os.ReadFile(filepath.Join(data, "token"))
		if err == nil {
			c.Token = strings.TrimSpace(string(token))
			_, err = c.Projects(ctx)
		}
		if err != nil {
			c.Token = ""
			time.Sleep(20 * time.Millisecond)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the daemon does not answer: %w", err)
		}
	}
	_, err := c.SetBrake(ctx, "many.example", api.BrakeRequest{Stop: true, Reason: "its owner asked"})
	_, err2 := c.SetBrake(ctx, "tdm.example",
		api.BrakeRequest{Delay: api.Milliseconds(20 * time.Second), Reason: "its owner asked for less"})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, name := range []string{"going", "paused", "stopped"} {
		if err := c.ControlProject(ctx, name, api.ActionStart); err != nil {
			return err
		}
	}
	if err := await(l.web, []string{"GET http://clean.example/", "GET http://cookie.example/"}); err != nil {
		return err
	}
	if err := errors.Join(c.ControlProject(ctx, "paused", api.ActionPause),
		c.ControlProject(ctx, "stopped", api.ActionStop)); err != nil {
		return err
	}
	return await(l.web, g.web.DaemonSeen)
}
