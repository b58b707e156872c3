package page

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// emptyValue is the text for an absent value.
const emptyValue = "–"

// templateFuncs returns the functions that templates call to format values and build links.
func templateFuncs(a assets) map[string]any {
	return map[string]any{
		"assetURL":            func(name string) string { return a.urlByName[name] },
		"count":               formatCount,
		"size":                func(n int64) string { return formatBytes(float64(n)) },
		"sizeInt":             func(n int) string { return formatBytes(float64(n)) },
		"rate":                formatRate,
		"duration":            formatDuration,
		"delay":               formatDelay,
		"relativeTime":        formatRelativeTime,
		"percent":             func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
		"shortHash":           func(hash string) string { return hash[:min(8, len(hash))] },
		"underscoresToSpaces": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"stateLabel":          stateLabelOf,
		"hostPath":            func(project, host string) string { return hostPath(project, host) },
		"pair":                func(a, b any) templateArgPair { return templateArgPair{a, b} },
		"queryEscape":         url.QueryEscape,
	}
}

// A templateArgPair passes two values to a template, which takes one.
type templateArgPair struct{ A, B any }

// hostPath returns the path of the page of a host.
func hostPath(project, host string) string {
	return "/projects/" + url.PathEscape(project) + "/hosts/" + url.PathEscape(host)
}

// formatCount formats an integer with commas between thousands, as 1,234,567.
func formatCount(n any) string {
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

// formatBytes formats a number of bytes with a unit from B to TiB.
func formatBytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", n, units[0])
}

// formatRate formats a number per second: with one decimal below 10, else as a whole number.
func formatRate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return formatCount(int64(perSecond + 0.5))
}

// formatDuration formats a duration in one unit, from ms to d. It rounds milliseconds up, so that a
// short one does not show as 0.
func formatDuration(d time.Duration) string {
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

// formatDelay formats a delay; 0 is emptyValue.
func formatDelay(m api.Milliseconds) string {
	if m == 0 {
		return emptyValue
	}
	return formatDuration(time.Duration(m))
}

// A formattedTime is a time relative to now (Text), and exactly (Exact for people, RFC3339 for
// programs). Both exact forms are empty for the zero time.
type formattedTime struct{ Text, Exact, RFC3339 string }

// formatRelativeTime formats a time relative to now, as "in 3 s".
func formatRelativeTime(now, t time.Time) formattedTime {
	if t.IsZero() {
		return formattedTime{Text: emptyValue}
	}
	formatted := formattedTime{Exact: t.UTC().Format("2006-01-02 15:04:05 UTC"),
		RFC3339: t.UTC().Format(time.RFC3339Nano)}
	switch d := t.Sub(now); {
	case d > time.Second/2:
		formatted.Text = "in " + formatDuration(d)
	case d < -time.Second/2:
		formatted.Text = formatDuration(-d) + " ago"
	default:
		formatted.Text = "now"
	}
	return formatted
}

// A stateLabel shows a state as a word and an icon, so that people can tell states apart without
// the colour that Tone sets.
type stateLabel struct{ Text, Icon, Tone string }

// stateLabelOf returns the label for a state of a project or a host.
func stateLabelOf(state any) stateLabel {
	name := fmt.Sprint(state)
	w, ok := stateLabels[name]
	if !ok {
		return stateLabel{name, "dot", "quiet"}
	}
	w.Text = name
	return w
}

// stateLabels holds the icons and tones of the states of projects and hosts.
var stateLabels = map[string]stateLabel{
	"running": {Icon: "play", Tone: "good"}, "pausing": {Icon: "pause", Tone: "wait"},
	"paused":  {Icon: "pause", Tone: "wait"},
	"stopped": {Icon: "stop", Tone: "quiet"}, "done": {Icon: "check", Tone: "quiet"},
	"failed": {Icon: "cross", Tone: "bad"},
	"due":    {Icon: "play", Tone: "good"}, "waiting": {Icon: "clock", Tone: "quiet"},
	"held":      {Icon: "pause", Tone: "wait"},
	"set aside": {Icon: "stop", Tone: "wait"}, "resting": {Icon: "moon", Tone: "quiet"},
}
