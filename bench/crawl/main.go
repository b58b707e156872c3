// Crawl measures whole crawls, of decorum and of other crawlers:
//
//	go run ./bench/crawl -workload W1
//	go run ./bench/crawl -workload W2
//	go run ./bench/crawl -workload broad
//	go run ./bench/crawl -workload web-2025
//
// A server process serves the pages and the robots.txt of each host on loopback. In each round every
// crawler visits all pages in a process of its own. Build the program with -pgo=deploy/decorum.pgo,
// as for production, and decorum is faster. The workloads (tls_web.go) are:
//
//   - W1, one host of 10,000 pages, and W2, 200 hosts of 100 pages: pages of 20,480 bytes with 50
//     links, by http, with a Content-Length like files, without a pause, with up to 16 simultaneous
//     requests.
//   - broad, 2,000 hosts of 10 pages: the same size and number of links, by https (TLS 1.3, ECDSA
//     P-256) and with gzip. Each response takes 50 ms, decorum pauses for a second at each host, and
//     up to 64 requests are simultaneous. The server keeps idle connections for a minute;
//     -idle-timeout 500ms makes it close them before the next request.
//   - web-2025, 20,000 hosts of one page, by https, too: pages with 80 links whose sizes have a
//     log-normal distribution with the median 138 KiB and the mean 242 KiB. The server closes each
//     connection after one response.
//
// The crawlers are:
//
//   - colly, used as in its documentation, with OnHTML and Visit;
//   - the command decorum crawl with its defaults: it follows links itself, keeps its state in files,
//     writes a line for each page, and records in a ledger what permitted each request; and the same
//     without the ledger;
//   - the same command with colly's callback, OnHTML and Visit, and with collyfetch.FollowLink in place
//     of Visit;
//   - spider-rs, if -spider names a directory where npm install @spider-rs/spider-rs was run, and wget2,
//     if it is installed: both write no files, and use the server as a proxy;
//   - a loop on net/http and the tokenizer of x/net/html that follows links, writes no files and
//     requests no robots.txt; and
//   - a loop on net/http that knows the pages and parses no links: the lower bound.
//
// A run fails unless the server saw each page requested exactly once. Only colly and spider-rs may
// request pages several times. If colly, spider-rs or wget2 fails with https, or misses pages, its
// row is left out: spider-rs ends after the first page of web-2025, which links to no other page of
// its host. Only decorum pauses at a host: the others request many pages of a host over a connection
// before it is idle.
//
// CPU is the user and system time of the crawler's process from its start to its end, per 1,000
// requested pages. The table has the medians of the rounds. The ratios apply to any machine,
// because the crawlers run in turn. For https the ratio is the CPU time of a page to that of wget2
// for a page of W1, which it crawls first in each round (without wget2, to that of the first crawler
// in the table). The table then has the connections and handshakes that the server counted, the
// requests that came before a host's delay was over (short gaps), and the CPU time of the server,
// which a machine of few cores needs, too. decorum fails if it has a short gap.
//
// With -profile and -shares, the program shows which parts of decorum take the time:
//
//	go run ./bench/crawl -workload web-2025 -only decorum -rounds 1 -profile /tmp/profiles
//	go run ./bench/crawl -shares /tmp/profiles/decorum.cpu
//
// Begin reading at benchmarkCrawlers, and at crawlers (crawlers.go) for what each one runs.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
)

// name is the name of the program in error messages.
const name = "bench/crawl"

func main() {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		program.Exit(name, runProcessTask(os.Args[2]))
	}
	var p childProcessTask
	web := workloadFlags(flag.CommandLine)
	flag.IntVar(&p.Workers, "workers", 0, "simultaneous requests; decorum divides them equally among the hosts "+
		"(default: 16 with http, 64 with https)")
	rounds := flag.Int("rounds", 5, "number of crawls by each crawler")
	flag.StringVar(&p.Dir, "dir", "", "directory for the files of crawls (default: the system's directory for "+
		"temporary files)")
	flag.StringVar(&p.Profile, "profile", "", "directory for profiles of the last round")
	flag.StringVar(&p.Spider, "spider", "", "directory where npm has installed @spider-rs/spider-rs")
	only := flag.String("only", "", "names of the crawlers to run, separated by commas; with http, ratios are "+
		"relative to the first (default: all; with https decorum, wget2, spider-rs and colly)")
	profile := flag.String("shares", "", "file of a CPU profile of decorum: print the shares of its parts instead of "+
		"crawling")
	flag.Parse()
	if *profile != "" {
		program.Exit(name, printShares(*profile, os.Stdout))
	}
	var err error
	if p.Web, err = web(); err != nil {
		program.Exit(name, err)
	}
	p.Workers = cmp.Or(p.Workers, p.Web.defaultWorkers())
	if p.Web.TLS != nil {
		*only = cmp.Or(*only, "decorum,wget2,spider-rs,colly")
	}
	some, err := selectCrawlers(*only)
	if err == nil && p.Profile != "" {
		err = os.MkdirAll(p.Profile, 0o755)
	}
	if err == nil {
		err = benchmarkCrawlers(p, some, workloads()["W1"], *rounds, os.Stdout)
	}
	program.Exit(name, err)
}

// benchmarkCrawlers runs all crawlers in turn, round by round, and prints the medians of their
// figures. If the web has https, wget2 crawls yardstick before them in each round.
func benchmarkCrawlers(p childProcessTask, all []crawler, yardstick workload, rounds int, out io.Writer) (err error) {
	if p.Web.Hosts < 1 || p.Web.Pages < 1 || p.Workers < 1 || rounds < 1 {
		return fmt.Errorf("hosts, pages, workers and rounds must be at least 1")
	}
	if p.Dir, err = os.MkdirTemp(p.Dir, "bench-crawl-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.Dir)
	f, err := startServerProcess(p.Web, p.Dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.stop()) }()
	var rows []*crawlerRow
	if p.Web.TLS != nil {
		y := p
		y.Web, y.Workers, y.Profile = yardstick, yardstick.defaultWorkers(), ""
		yardstickServer, err := startServerProcess(y.Web, p.Dir)
		if err != nil {
			return err
		}
		defer yardstickServer.stop()
		wget2, err := selectCrawlers("wget2")
		if err != nil {
			return err
		}
		rows = append(rows, &crawlerRow{crawler: wget2[0], name: "wget2, http, one host", task: y,
			server: yardstickServer})
	}
	for _, c := range all {
		rows = append(rows, &crawlerRow{crawler: c, name: c.name, task: p, server: f})
	}
	for range rounds {
		for _, r := range rows {
			if err := r.measureRound(); err != nil {
				return err
			}
		}
	}
	// A crawler without figures has no row.
	rows = slices.DeleteFunc(rows, func(r *crawlerRow) bool { return len(r.figuresByRound) == 0 })
	if p.Web.TLS != nil {
		return printTLSTable(out, rows)
	}
	return printTable(out, rows)
}

// A crawlerRow is a row of the table: a crawler, its task and its figures.
type crawlerRow struct {
	crawler        crawler
	name           string
	task           childProcessTask
	server         *serverProcess
	figuresByRound []runFigures
}

// measureRound measures a crawl, and prints its figures to standard error. A crawler that is not
// installed has no figures. Nor has one that fails with https and may do so.
func (r *crawlerRow) measureRound() error {
	figures, err := r.crawler.measure(r.task, r.server)
	if errors.Is(err, errNotInstalled) || err != nil && r.crawler.mayFailWithTLS && r.task.Web.TLS != nil {
		fmt.Fprintln(os.Stderr, err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%-21s %+v\n", r.name, figures)
	r.figuresByRound = append(r.figuresByRound, figures)
	return nil
}

// median returns the median of a figure over the rounds.
func (r *crawlerRow) median(of func(runFigures) float64) float64 { return median(r.figuresByRound, of) }

// cpuSeconds returns the CPU time per 1,000 page requests.
func cpuSeconds(f runFigures) float64 { return f.CPUSecondsPer1000Pages }

// printTable prints rows. The ratio is how many times as many pages as the first the
// crawler crawls in the same CPU time.
func printTable(out io.Writer, rows []*crawlerRow) error {
	t := table.New(out, "crawler", "version", "CPU s/1k pages", "ratio", "pages/s", "peak RSS MiB", "requests/page")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.1f\t%.0f\t%.0f\t%.2f\t\n", r.name, r.crawler.versionOf(r.task),
			r.median(cpuSeconds), rows[0].median(cpuSeconds)/r.median(cpuSeconds),
			r.median(func(f runFigures) float64 { return f.PagesPerSecond }),
			r.median(func(f runFigures) float64 { return f.PeakRSSMiB }),
			r.median(func(f runFigures) float64 { return f.RequestsPerPage }))
	}
	return t.Flush()
}

// printTLSTable prints rows of crawls of https pages. The ratio is how many times the CPU time of the
// first row a page takes.
func printTLSTable(out io.Writer, rows []*crawlerRow) error {
	t := table.New(out, "crawler", "version", "CPU s/1k pages", "ratio", "pages/s", "peak RSS MiB", "KiB/host",
		"requests", "repeated", "connections", "handshakes", "resumed", "resumed after first", "most/host",
		"short gaps", "server CPU s/1k")
	for _, r := range rows {
		count := func(of func(requestCounts) int) float64 {
			return r.median(func(f runFigures) float64 { return float64(of(f.Server)) })
		}
		rss := r.median(func(f runFigures) float64 { return f.PeakRSSMiB })
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.2f\t%.0f\t%.0f\t", r.name, r.crawler.versionOf(r.task),
			r.median(cpuSeconds), r.median(cpuSeconds)/rows[0].median(cpuSeconds),
			r.median(func(f runFigures) float64 { return f.PagesPerSecond }), rss)
		if r.task.Web.TLS == nil {
			fmt.Fprint(t, strings.Repeat("\t", 9))
		} else {
			fmt.Fprintf(t, "%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f %%\t%.0f\t%.0f\t",
				rss*1024/float64(r.task.Web.Hosts),
				count(func(c requestCounts) int { return c.Requests }),
				count(func(c requestCounts) int { return c.PageRequests - c.Distinct }),
				count(func(c requestCounts) int { return c.Connections }),
				count(requestCounts.handshakes), count(func(c requestCounts) int { return c.ResumedHandshakes }),
				r.median(func(f runFigures) float64 { return 100 * f.Server.resumedAfterFirst() }),
				count(func(c requestCounts) int { return c.MostHandshakesOfHost }),
				count(func(c requestCounts) int { return c.ShortGaps }))
		}
		fmt.Fprintf(t, "%.3f\t\n", r.median(func(f runFigures) float64 {
			return f.Server.ServerCPUSeconds / float64(f.Server.PageRequests) * 1000
		}))
	}
	return t.Flush()
}

// median returns the median of a figure over the rounds.
func median(rounds []runFigures, of func(runFigures) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
