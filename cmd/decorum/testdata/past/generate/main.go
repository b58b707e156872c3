// Generate makes the files beside its directory: the state that the program of commit 0689618 leaves
// when it is killed with SIGKILL. Run it in a working tree of that commit; later commits do not compile
// it. See README.md.
package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// asCommand is the environment variable that makes this program the decorum command.
const asCommand = "PAST_AS_COMMAND"

func main() {
	if os.Getenv(asCommand) != "" {
		daemon.Main(collyfetch.NamedCallbacks{"past": callbacks})
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIR, where DIR holds web.json and project.yaml")
		os.Exit(2)
	}
	g := &generator{dir: os.Args[1]}
	if err := g.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// callbacks registers callbacks that follow links and post forms.
func callbacks(c *collyfetch.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = collyfetch.FollowLink(e.Request, e.Attr("href")) })
	c.OnHTML("form[action]", func(e *colly.HTMLElement) {
		_ = e.Request.Post(e.Attr("action"), map[string]string{"form": e.Attr("action")})
	})
}

// A generator makes the files in dir.
type generator struct {
	dir  string
	temp string
	web  description
}

func (g *generator) run() (err error) {
	if g.web, err = readDescription(filepath.Join(g.dir, "web.json")); err != nil {
		return err
	}
	if g.temp, err = os.MkdirTemp("", "past"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(g.temp)) }()
	return errors.Join(g.crawl(), g.redis(), g.daemon())
}

// A life is one run of the command: the process, its web and servers, and its standard error.
type life struct {
	web     *crawltest.Web
	servers servers
	process *exec.Cmd
	stderr  bytes.Buffer
}

// start starts the decorum command on a new web.
func (g *generator) start(name string, args ...string) (*life, error) {
	l := &life{web: g.web.web()}
	l.servers = serve(l.web)
	l.process = command(args...)
	ca := filepath.Join(g.temp, name+".pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.servers.tls.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		return nil, err
	}
	l.process.Env = append(l.process.Env, "SSL_CERT_FILE="+ca)
	l.process.Stderr = &l.stderr
	return l, nil
}

// kill kills the process after the given time, waits for its end, and returns when it was killed.
func (l *life) kill(after time.Duration) (killed time.Time, err error) {
	time.Sleep(after)
	killed = time.Now()
	if err := l.process.Process.Signal(syscall.SIGKILL); err != nil {
		return killed, err
	}
	if err := l.process.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		return killed, fmt.Errorf("the process ended with %v:\n%s", err, &l.stderr)
	}
	l.servers.plain.CloseClientConnections() // ends the requests that hang
	l.servers.tls.CloseClientConnections()
	time.Sleep(100 * time.Millisecond)
	return killed, nil
}

// crawl runs and kills a crawl in files, and exports its state.
func (g *generator) crawl() error {
	data := filepath.Join(g.temp, "crawl", "data")
	l, err := g.start("crawl")
	if err != nil {
		return err
	}
	first, second := filepath.Join(g.dir, "project-first.yaml"), filepath.Join(g.dir, "project.yaml")
	killed, err := g.runTwice(l, first, second, "--data", data, "--warc", filepath.Join(data, "..", "warc"))
	if err != nil {
		return err
	}
	if err := dropFinished(filepath.Join(data, "..", "warc")); err != nil {
		return err
	}
	if err := g.save("crawl", filepath.Dir(data), killed, l.web); err != nil {
		return err
	}
	return g.export(data)
}

// dropFinished removes the complete WARC files, as an operator may do. The crawl does not need them to
// continue, and they would be most of the stored data.
func dropFinished(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// runTwice runs a crawl with the first project until its time limit ends it, and with the second until
// it is killed.
func (g *generator) runTwice(l *life, first, second string, args ...string) (killed time.Time, err error) {
	args = append(append(args, "--progress=none", "--log-level=error"), l.servers.connectTo()...)
	crawl := exec.Command(l.process.Path, append([]string{"crawl", "-c", first}, args...)...)
	crawl.Env, crawl.Stderr = l.process.Env, os.Stderr
	if err := crawl.Run(); err == nil || crawl.ProcessState.ExitCode() != daemon.ExitStopped {
		return killed, fmt.Errorf("the first run ended with %v, not by its limit", err)
	}
	l.process.Args = append(l.process.Args, append([]string{"crawl", "--resume", "-c", second}, args...)...)
	if err := l.process.Start(); err != nil {
		return killed, err
	}
	if err := await(l.web, g.web.Seen); err != nil {
		return killed, fmt.Errorf("%w\n%s", errors.Join(err, l.process.Process.Kill()), &l.stderr)
	}
	return l.kill(time.Second)
}

// export exports the crawl in data, and interrupts an import of the export.
func (g *generator) export(data string) error {
	exported, err := command("frontier", "export", "--data", data).Output()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := writeCompressed(filepath.Join(g.dir, "export.jsonl.zst"), exported); err != nil {
		return err
	}
	half := filepath.Join(g.temp, "import")
	c := command("frontier", "import", "--data", filepath.Join(half, "data"))
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if _, err := in.Write(exported[:len(exported)*2/3]); err != nil {
		return err
	}
	time.Sleep(time.Second)
	killed := time.Now()
	if err := errors.Join(c.Process.Signal(syscall.SIGKILL)); err != nil {
		return err
	}
	_ = c.Wait() // it was killed
	return g.save("import", half, killed, nil)
}

// save writes the files that a process left, and the log of its servers.
func (g *generator) save(name, dir string, killed time.Time, web *crawltest.Web) error {
	if err := os.WriteFile(filepath.Join(dir, "killed"),
		[]byte(killed.UTC().Format(time.RFC3339Nano)), 0o600); err != nil {
		return err
	}
	if web != nil {
		var log bytes.Buffer
		if err := crawltest.WriteLog(&log, web.Log()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), log.Bytes(), 0o600); err != nil {
			return err
		}
	}
	packed, err := pack(dir)
	if err != nil {
		return err
	}
	return writeCompressed(filepath.Join(g.dir, name+".tar.zst"), packed)
}

// command returns the decorum command as a separate process.
func command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stderr = os.Stderr
	return c
}
