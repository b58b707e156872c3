// Crawl measures whole crawls, of decorum and of other crawlers:
//
//	go run ./bench/crawl -hosts 1 -pages 10000
//	go run ./bench/crawl -hosts 200 -pages 100
//
// A server process serves pages of 20,480 bytes with 50 links on loopback, with a Content-Length
// like files, and a robots.txt for each host. Build the program with -pgo=deploy/decorum.pgo, as
// for production, and decorum is faster.
//
// In each round every crawler visits all pages in a process of its own, without a pause, with up to
// 16 simultaneous requests:
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
// request pages several times.
//
// CPU is the user and system time of the crawler's process from its start to its end, per 1,000
// requested pages. The table has the medians of the rounds. The ratios apply to any machine,
// because the crawlers run in turn.
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
	flag.IntVar(&p.Web.Hosts, "hosts", 1, "number of hosts")
	flag.IntVar(&p.Web.Pages, "pages", 10_000, "number of pages of each host")
	flag.IntVar(&p.Workers, "workers", 16, "simultaneous requests; decorum divides them equally among the hosts")
	rounds := flag.Int("rounds", 5, "number of crawls by each crawler")
	flag.StringVar(&p.Dir, "dir", "", "directory for the files of crawls (default: the system's directory for "+
		"temporary files)")
	flag.StringVar(&p.Profile, "profile", "", "directory for profiles of the last round")
	flag.StringVar(&p.Spider, "spider", "", "directory where npm has installed @spider-rs/spider-rs")
	only := flag.String("only", "", "names of the crawlers to run, separated by commas; ratios are relative to the "+
		"first (default: all)")
	flag.Parse()
	some, err := selectCrawlers(*only)
	if err == nil && p.Profile != "" {
		err = os.MkdirAll(p.Profile, 0o755)
	}
	if err == nil {
		err = benchmarkCrawlers(p, some, *rounds, os.Stdout)
	}
	program.Exit(name, err)
}

// benchmarkCrawlers runs all crawlers in turn, round by round, and prints the medians of their
// figures.
func benchmarkCrawlers(p childProcessTask, all []crawler, rounds int, out io.Writer) (err error) {
	if p.Web.Hosts < 1 || p.Web.Pages < 1 || p.Workers < 1 || rounds < 1 {
		return fmt.Errorf("hosts, pages, workers and rounds must be at least 1")
	}
	f, err := startServerProcess(p.Web)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.stop()) }()
	// Run the rounds. A crawler that is not installed has no row.
	rows := make([]crawlerRow, len(all))
	for range rounds {
		for i, c := range all {
			r, err := c.measure(p, f)
			if rows[i].notInstalled = errors.Is(err, errNotInstalled); rows[i].notInstalled {
				fmt.Fprintln(os.Stderr, err)
				continue
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%-21s %+v\n", c.name, r)
			rows[i].figuresByRound = append(rows[i].figuresByRound, r)
		}
	}
	for i, c := range all {
		rows[i].name, rows[i].version = c.name, c.versionOf(p)
	}
	return printTable(out, slices.DeleteFunc(rows, func(r crawlerRow) bool { return r.notInstalled }))
}

// A crawlerRow is the row of a crawler in the table.
type crawlerRow struct {
	name, version  string
	notInstalled   bool // the row is left out
	figuresByRound []runFigures
}

// printTable prints rows. The ratio is how many times as many pages as the first the
// crawler crawls in the same CPU time.
func printTable(out io.Writer, rows []crawlerRow) error {
	t := table.New(out, "crawler", "version", "CPU s/1k pages", "ratio", "pages/s", "peak RSS MiB", "requests/page")
	cpu := func(f runFigures) float64 { return f.CPUSecondsPer1000Pages }
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.1f\t%.0f\t%.0f\t%.2f\t\n", r.name, r.version,
			median(r.figuresByRound, cpu), median(rows[0].figuresByRound, cpu)/median(r.figuresByRound, cpu),
			median(r.figuresByRound, func(f runFigures) float64 { return f.PagesPerSecond }),
			median(r.figuresByRound, func(f runFigures) float64 { return f.PeakRSSMiB }),
			median(r.figuresByRound, func(f runFigures) float64 { return f.RequestsPerPage }))
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
