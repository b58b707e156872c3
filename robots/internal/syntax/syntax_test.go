package syntax

import (
	"slices"
	"testing"
	"time"
)

func TestParseLine(t *testing.T) {
	for text, want := range map[string]Line{
		"Disallow: /a # why":   {Value: "/a", Field: Disallow},
		"\tALLOW :\t/b ":       {Value: "/b", Field: Allow},
		"Crawl-delay: 2.5":     {Value: "2.5", Field: CrawlDelay},
		"visit-time:0600-0845": {Value: "0600-0845", Field: VisitTime},
	} {
		if got, ok := ParseLine(text); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "#Allow: /", "Allow /", "Disalow: /"} {
		if got, ok := ParseLine(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestTimeOfDayRangeNext(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 7, 1, hour, minute, 30, 0, time.UTC) }
	for _, test := range []struct {
		value    string
		from, to time.Time
	}{
		{"0600-0845", at(7, 0), at(7, 0)},
		{"0600-0845", at(9, 0), at(30, 0).Truncate(time.Minute)},
		{"2200-0600", at(23, 0), at(23, 0)},
		{"22:00-06:00", at(6, 0), at(22, 0).Truncate(time.Minute)},
	} {
		r, ok := ParseTimeOfDayRange(test.value)
		if got := r.Next(test.from); !ok || !got.Equal(test.to) {
			t.Errorf("%s from %v on: %v, %v, want %v", test.value, test.from, got, ok, test.to)
		}
	}
}

func TestParsePreferences(t *testing.T) {
	for list, want := range map[string][]Preference{
		"":                           nil,
		"train-ai=n, Search=YES":     {{"train-ai", PreferenceDisallowed}, {"search", PreferenceAllowed}},
		"a=n, a=y":                   {{"a", PreferenceAllowed}},
		"a=perhaps, b":               {{"a", PreferenceUnset}, {"b", PreferenceUnset}},
		`a="x, y=n", c=n;expires=10`: {{"a", PreferenceUnset}, {"c", PreferenceDisallowed}},
	} {
		if got := ParsePreferences(list); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
}
