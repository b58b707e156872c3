package collyfetch_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// formCount is how many POSTs postForms sends.
const formCount = 30

// postForms posts formCount forms, and prints the outcome of each.
func postForms(c *collyfetch.Crawl) error {
	c.OnResponse(func(r *colly.Response) { fmt.Println("answered", r.Ctx.Get("n")) })
	c.OnError(func(r *colly.Response, err error) {
		if errors.Is(err, decorum.InDoubt) {
			fmt.Println("in doubt", r.Ctx.Get("n"))
		}
	})
	for n := range formCount {
		ctx := colly.NewContext()
		ctx.Put("n", fmt.Sprint(n))
		if err := c.Collector.Request("POST", "http://a.test/form",
			strings.NewReader(fmt.Sprint("n=", n)), ctx, nil); err != nil {
			return err
		}
	}
	c.Wait()
	return nil
}

// A processKiller kills the current process delay after it has made a number of requests.
type processKiller struct {
	mu           sync.Mutex // guards process, requestsLeft and delay
	process      *os.Process
	requestsLeft int // before the kill; negative: the process lives
	delay        time.Duration
}

func (k *processKiller) arm(p *os.Process, requests int, delay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.process, k.requestsLeft, k.delay = p, requests, delay
}

func (k *processKiller) countRequest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.requestsLeft--; k.requestsLeft != 0 {
		return
	}
	process := k.process
	if k.delay == 0 { // before the response is sent
		_ = process.Kill()
		return
	}
	time.AfterFunc(k.delay, func() { _ = process.Kill() })
}

// TestKilledPosts: a program that posts 30 forms is killed repeatedly, at random moments. No form
// reaches the server twice, and the program learns the outcome of each: answered, or in doubt.
func TestKilledPosts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs in processes of its own")
	}
	killer := &processKiller{}
	web := crawltest.New(crawltest.Site{Host: "a.test",
		OtherMethodPages: map[string]crawltest.PageFunc{"/form": func(crawltest.PageRequest) crawltest.Response {
			killer.countRequest()
			return crawltest.HTML("thanks")
		}}})
	server, err := web.Start("")
	must(t, err)
	defer server.Close()
	self, err := os.Executable()
	must(t, err)
	dir, outcomes := filepath.Join(t.TempDir(), "state"), map[string]bool{}
	var restarts []time.Time
	runUntilKilled := func(requests int, delay time.Duration) {
		c := exec.Command(self, dir, "forms")
		c.Env = append(os.Environ(), programEnv+"="+server.Addr)
		out, err := c.StdoutPipe()
		must(t, err)
		restarts = append(restarts, time.Now())
		must(t, c.Start())
		killer.arm(c.Process, requests, delay)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			outcomes[lines.Text()] = true
		}
		if err := c.Wait(); (err != nil) != (requests > 0) {
			t.Errorf("the program ended with %v", err)
		}
		must(t, server.AwaitDisconnects(t.Context()))
	}
	for run := range 7 {
		runUntilKilled(1+rand.IntN(2), time.Duration(run%4)*time.Duration(rand.IntN(10_000))*time.Microsecond)
	}
	runUntilKilled(-1, 0)
	inDoubt := 0
	for n := range formCount {
		answered, doubted := outcomes[fmt.Sprint("answered ", n)], outcomes[fmt.Sprint("in doubt ", n)]
		if !answered && !doubted {
			t.Errorf("OnError and OnResponse did not get the outcome of form %d", n)
		}
		if doubted {
			inDoubt++
		}
	}
	if inDoubt == 0 {
		t.Error("none was in doubt, though two lives at least ended before an answer")
	}
	seen := map[string]bool{}
	for _, x := range web.Log() {
		if x.Method == "POST" && seen[x.RequestBodySHA256] {
			t.Errorf("a form came twice: %s", x.RequestBodySHA256)
		}
		seen[x.RequestBodySHA256] = true
	}
	report := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot", MinDelay: 20 * time.Millisecond,
		RestartTimes: restarts[1:], CrashLossWindow: time.Second})
	if !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}
