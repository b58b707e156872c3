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

	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A countPair is what both sides have counted.
type countPair struct {
	name                     string
	daemonCount, serverCount float64
	tolerance                float64 // by so much brakes may have made them differ
}

// isWithinTolerance reports whether both sides agree.
func (c countPair) isWithinTolerance() bool {
	return math.Abs(c.daemonCount-c.serverCount) <= c.tolerance
}

// A serverCounts is what the servers have counted of one kind, by words.
type serverCounts struct{ totals, uncertain map[string]float64 }

func (t *serverCounts) addCount(word string, n float64, uncertain bool) {
	if t.totals == nil {
		t.totals, t.uncertain = map[string]float64{}, map[string]float64{}
	}
	t.totals[word] += n
	if uncertain {
		t.uncertain[word] += n
	}
}

// pairWithDaemonCounts sets what the daemon has counted beside a tally.
func (t *serverCounts) pairWithDaemonCounts(kind string, daemon map[string]float64) (all []countPair) {
	words := maps.Clone(daemon)
	maps.Copy(words, t.totals)
	for _, word := range slices.Sorted(maps.Keys(words)) {
		all = append(all, countPair{kind + word, daemon[word], t.totals[word], t.uncertain[word]})
	}
	return all
}

// collectCountPairs sets what the daemon has counted beside what the web has.
func collectCountPairs(n metricFamilies, log []crawltest.Exchange, o *operator) []countPair {
	var classes, robotsFetches, bytes serverCounts
	for _, x := range log {
		cut := o.mayHaveBeenCutByBrake(x)
		classes.addCount(statusClass(x), 1, cut)
		if cut && statusClass(x) != "none" {
			classes.uncertain["none"]++ // which the daemon may take it for
		}
		if strings.HasSuffix(x.URL, "/robots.txt") {
			robotsFetches.addCount(robotsFetchOutcome(x), 1, cut)
		}
		bytes.addCount("", float64(decodedBodyLength(x)), cut)
	}
	unseen := o.maxRequestsCutByBrakes(n.sumSeries("decorum_visits_total") - float64(len(log)))
	classes.addCount("none", 0, false)
	classes.uncertain["none"] += unseen
	all := []countPair{{"requests", n.sumSeries("decorum_visits_total"), float64(len(log)), unseen}}
	all = append(all, classes.pairWithDaemonCounts("answers ", n.sumByLabel("decorum_visits_total", "status_class"))...)
	all = append(all, robotsFetches.pairWithDaemonCounts("robots.txt: ", n.sumByLabel("decorum_robots_fetch_total", "outcome"))...)
	return append(all, bytes.pairWithDaemonCounts("bytes of bodies", n.sumByLabel("decorum_bytes_total", ""))...)
}

// statusClass is the class of an answer's status; none: it did not come whole.
func statusClass(x crawltest.Exchange) string {
	if x.Incomplete || x.Status == 0 {
		return "none"
	}
	return strconv.Itoa(x.Status/100) + "xx"
}

// robotsFetchOutcome is what an answer to a request for a robots.txt means.
func robotsFetchOutcome(x crawltest.Exchange) string {
	switch {
	case x.Incomplete || x.Status == 0 || x.Status/100 == 5:
		return "disallow_all"
	case x.Status/100 == 4:
		return "allow_all"
	}
	return "rules"
}

// decodedBodyLength is how many bytes of a body a client has when it has undone the
// compression, 0 if it cannot have all of it.
func decodedBodyLength(x crawltest.Exchange) int {
	switch {
	case statusClass(x) == "none":
		return 0
	case x.Status/100 != 2:
		return int(x.BodyBytes)
	}
	u, err := url.Parse(x.URL)
	if err != nil {
		return int(x.BodyBytes)
	}
	host, page, ok := parsePageURL(u)
	if !ok {
		return int(x.BodyBytes)
	}
	return len(pageHTML(host, page))
}

// parsePageURL returns the page of a URL, and false if it is none.
func parsePageURL(u *url.URL) (host, page int, ok bool) {
	_, err := fmt.Sscanf(u.Host, "www.site-%d.example", &host)
	page, ok = pageNumber(u.Path)
	return host, page, ok && err == nil
}

// hostOf is the host of a URL as the log has it.
func hostOf(x string) string {
	_, rest, _ := strings.Cut(x, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// checkCountPairs prints both sides, and returns an error if they are not the same.
func checkCountPairs(out io.Writer, all []countPair) error {
	t := table.New(out, "", "daemon", "servers", "")
	wrong := 0
	for _, c := range all {
		verdict := "equal"
		switch {
		case !c.isWithinTolerance():
			verdict = fmt.Sprintf("%+.0f", c.daemonCount-c.serverCount)
			wrong++
		case c.daemonCount != c.serverCount:
			verdict = fmt.Sprintf("%+.0f, overtaken by a brake", c.daemonCount-c.serverCount)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t\n", c.name, c.daemonCount, c.serverCount, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d counts of the daemon differ from the servers'", wrong)
	}
	return nil
}
