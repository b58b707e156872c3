package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A count is what both sides have counted.
type count struct {
	what            string
	daemon, servers float64
	cut             float64 // by so much brakes may have made them differ
}

// equal reports whether both sides agree.
func (c count) equal() bool { return math.Abs(c.daemon-c.servers) <= c.cut }

// A tally is what the servers have counted of one kind, by words.
type tally struct{ all, cut map[string]float64 }

func (t *tally) add(word string, n float64, cut bool) {
	if t.all == nil {
		t.all, t.cut = map[string]float64{}, map[string]float64{}
	}
	t.all[word] += n
	if cut {
		t.cut[word] += n
	}
}

// beside sets what the daemon has counted beside a tally.
func (t *tally) beside(kind string, daemon map[string]float64) (all []count) {
	words := maps.Clone(daemon)
	maps.Copy(words, t.all)
	for _, word := range slices.Sorted(maps.Keys(words)) {
		all = append(all, count{kind + word, daemon[word], t.all[word], t.cut[word]})
	}
	return all
}

// counts sets what the daemon has counted beside what the web has.
func counts(n numbers, log []crawltest.Exchange, o *operator) []count {
	var classes, lookups, bytes tally
	for _, x := range log {
		cut := o.cut(x)
		classes.add(class(x), 1, cut)
		if cut && class(x) != "none" {
			classes.cut["none"]++ // which the daemon may take it for
		}
		if strings.HasSuffix(x.URL, "/robots.txt") {
			lookups.add(outcome(x), 1, cut)
		}
		bytes.add("", float64(decoded(x)), cut)
	}
	unseen := o.unseen(n.sum("decorum_visits_total") - float64(len(log)))
	classes.add("none", 0, false)
	classes.cut["none"] += unseen
	all := []count{{"requests", n.sum("decorum_visits_total"), float64(len(log)), unseen}}
	all = append(all, classes.beside("answers ", n.by("decorum_visits_total", "status_class"))...)
	all = append(all, lookups.beside("robots.txt: ", n.by("decorum_robots_fetch_total", "outcome"))...)
	return append(all, bytes.beside("bytes of bodies", n.by("decorum_bytes_total", ""))...)
}

// class is the class of an answer's status; none: it did not come whole.
func class(x crawltest.Exchange) string {
	if x.Broken || x.Status == 0 {
		return "none"
	}
	return strconv.Itoa(x.Status/100) + "xx"
}

// outcome is what an answer to a request for a robots.txt means.
func outcome(x crawltest.Exchange) string {
	switch {
	case x.Broken || x.Status == 0 || x.Status/100 == 5:
		return "disallow_all"
	case x.Status/100 == 4:
		return "allow_all"
	}
	return "rules"
}

// decoded is how many bytes of a body a client has when it has undone the
// compression, 0 if it cannot have all of it.
func decoded(x crawltest.Exchange) int {
	switch {
	case class(x) == "none":
		return 0
	case x.Status/100 != 2:
		return int(x.Bytes)
	}
	u, err := url.Parse(x.URL)
	if err != nil {
		return int(x.Bytes)
	}
	host, page, ok := locate(u)
	if !ok {
		return int(x.Bytes)
	}
	return len(body(host, page))
}

// locate returns the page of a URL, and false if it is none.
func locate(u *url.URL) (host, page int, ok bool) {
	_, err := fmt.Sscanf(u.Host, "www.site-%d.example", &host)
	page, ok = find(u.Path)
	return host, page, ok && err == nil
}

// hostOf is the host of a URL as the log has it.
func hostOf(x string) string {
	_, rest, _ := strings.Cut(x, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// printCounts prints both sides, and returns an error if they are not the same.
func printCounts(out io.Writer, all []count) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tdaemon\tservers\t\t")
	wrong := 0
	for _, c := range all {
		verdict := "equal"
		switch {
		case !c.equal():
			verdict = fmt.Sprintf("%+.0f", c.daemon-c.servers)
			wrong++
		case c.daemon != c.servers:
			verdict = fmt.Sprintf("%+.0f, overtaken by a brake", c.daemon-c.servers)
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%s\t\n", c.what, c.daemon, c.servers, verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d counts of the daemon differ from the servers'", wrong)
	}
	return nil
}
