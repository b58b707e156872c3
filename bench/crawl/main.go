// The program crawl measures whole crawls, decorum's beside colly's:
//
//	go run ./bench/crawl -hosts 1 -pages 10000
//	go run ./bench/crawl -hosts 200 -pages 100
//
// A server in a process of its own serves pages of 20,480 bytes with 50 links on
// loopback, as files are served, with their length, and a robots.txt for each host. In each round every crawler visits all of them, in a
// process of its own, without a pause: colly as its documentation shows, with
// OnHTML and Visit; the command decorum crawl, which follows links itself, keeps
// its state in files and writes a line for each page; the same with colly's
// callback, OnHTML and Visit, and with collyfetch.Follow in the place of Visit; and
// a loop on net/http that is told the pages and reads no links: the floor. A run whose server did not see each page
// asked for once fails, but for colly, which asks for some several times.
//
// CPU is user and system time of the crawler's process from its start to its
// end, for 1,000 pages asked; the table has the medians of the rounds. Ratios
// hold on any machine, so long as the crawlers run in turn.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		end(child(os.Args[2]))
	}
	var p plan
	flag.IntVar(&p.Web.Hosts, "hosts", 1, "how many hosts")
	flag.IntVar(&p.Web.Pages, "pages", 10_000, "how many pages of each host")
	flag.IntVar(&p.Workers, "workers", 8, "requests at a time; decorum makes one at a time to each host")
	rounds := flag.Int("rounds", 5, "how often each crawler crawls")
	flag.StringVar(&p.Dir, "dir", "", "where crawls keep their files (default: the system's directory for temporary files)")
	flag.StringVar(&p.Profile, "profile", "", "directory for profiles, of the last round")
	flag.Parse()
	end(run(p, *rounds, os.Stdout))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/crawl:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run lets all crawlers crawl in turn, round by round, and prints the medians.
func run(p plan, rounds int, out io.Writer) (err error) {
	if p.Web.Hosts < 1 || p.Web.Pages < 1 || p.Workers < 1 || rounds < 1 {
		return fmt.Errorf("hosts, pages, workers and rounds must be at least 1")
	}
	f, err := startFarm(p.Web)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.stop()) }()
	all := crawlers()
	results := make([][]figures, len(all))
	for range rounds {
		for i, c := range all {
			r, err := c.measure(p, f)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%-21s %+v\n", c.name, r)
			results[i] = append(results[i], r)
		}
	}
	return print(out, all, results)
}

// print prints a row for each crawler. The ratio is how many times as many pages
// as the first it crawls in the same CPU time.
func print(out io.Writer, all []crawler, results [][]figures) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "crawler\tCPU s/1k pages\tratio\tpages/s\tpeak RSS MiB\trequests/page\t")
	cpu := func(f figures) float64 { return f.CPU }
	first := median(results[0], cpu)
	for i, c := range all {
		r := results[i]
		fmt.Fprintf(table, "%s\t%.3f\t%.1f\t%.0f\t%.0f\t%.2f\t\n", c.name, median(r, cpu), first/median(r, cpu),
			median(r, func(f figures) float64 { return f.Speed }),
			median(r, func(f figures) float64 { return f.RSS }),
			median(r, func(f figures) float64 { return f.Asked }))
	}
	return table.Flush()
}

// median returns the median of a figure over the rounds.
func median(rounds []figures, of func(figures) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
