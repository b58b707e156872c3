package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// none is what stands where there is nothing to say.
const none = "–"

// words are what templates say values with.
func words(a assets) template.FuncMap {
	return template.FuncMap{
		"asset":   func(name string) string { return a.urls[name] },
		"count":   count,
		"size":    func(n int64) string { return size(float64(n)) },
		"octets":  func(n int) string { return size(float64(n)) },
		"rate":    rate,
		"lapse":   lapse,
		"gap":     gap,
		"when":    tell,
		"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
		"short":   func(hash string) string { return hash[:min(8, len(hash))] },
		"spaced":  func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"state":   stateWord,
		"host":    func(project, host string) string { return hostPath(project, host) },
		"pair":    func(a, b any) pair { return pair{a, b} },
		"query":   url.QueryEscape,
	}
}

// A pair is two values for a template that takes one.
type pair struct{ A, B any }

// hostPath is where the page of a host is.
func hostPath(project, host string) string {
	return "/projects/" + url.PathEscape(project) + "/hosts/" + url.PathEscape(host)
}

// count writes a number with its thousands apart.
func count(n any) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// size writes a number of bytes.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", n, units[0])
}

// rate writes how much of something there is in a second.
func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return count(int64(perSecond + 0.5))
}

// lapse writes a span of time as people say it.
func lapse(d time.Duration) string {
	switch {
	case d <= 999*time.Millisecond:
		return fmt.Sprintf("%d ms", (d+time.Millisecond-1)/time.Millisecond)
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	}
	return fmt.Sprintf("%d d", d.Round(24*time.Hour)/(24*time.Hour))
}

// gap writes a rest, which there may be none of.
func gap(m api.Milliseconds) string {
	if m == 0 {
		return none
	}
	return lapse(time.Duration(m))
}

// A told time is one as people say it, with what it is exactly.
type told struct{ Text, Exact, Machine string }

// tell says a time relative to now.
func tell(now, t time.Time) told {
	if t.IsZero() {
		return told{Text: none}
	}
	told := told{Exact: t.UTC().Format("2006-01-02 15:04:05 UTC"), Machine: t.UTC().Format(time.RFC3339Nano)}
	switch d := t.Sub(now); {
	case d > time.Second/2:
		told.Text = "in " + lapse(d)
	case d < -time.Second/2:
		told.Text = lapse(-d) + " ago"
	default:
		told.Text = "now"
	}
	return told
}

// A word is a state as the page shows it: a word and a shape, so that it can be
// told without colours.
type word struct{ Text, Icon, Tone string }

// stateWord returns the word for a state of a project or a host.
func stateWord(state any) word {
	name := fmt.Sprint(state)
	w, ok := stateWords[name]
	if !ok {
		return word{name, "dot", "quiet"}
	}
	w.Text = name
	return w
}

var stateWords = map[string]word{
	"running": {Icon: "play", Tone: "good"}, "pausing": {Icon: "pause", Tone: "wait"}, "paused": {Icon: "pause", Tone: "wait"},
	"stopped": {Icon: "stop", Tone: "quiet"}, "done": {Icon: "check", Tone: "quiet"}, "failed": {Icon: "cross", Tone: "bad"},
	"due": {Icon: "play", Tone: "good"}, "waiting": {Icon: "clock", Tone: "quiet"}, "held": {Icon: "pause", Tone: "wait"},
	"set aside": {Icon: "stop", Tone: "wait"}, "resting": {Icon: "moon", Tone: "quiet"},
}
