package politeness_test

import (
	"testing"
	"time"
	_ "time/tzdata" // provides the tests' zones on any machine

	"github.com/decorum-crawler/decorum/politeness"
)

// timeLayout includes the offset, because these tests are about local time.
const timeLayout = "2006-01-02 15:04:05 -07"

func parseTime(t *testing.T, s string) time.Time {
	t.Helper()
	m, err := time.Parse(timeLayout, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWindowNextOpen checks NextOpen; "=" stands for a window that is open already.
func TestWindowNextOpen(t *testing.T) {
	const prague, newYork = "Europe/Prague", "America/New_York"
	for _, tt := range []struct{ name, hours, zone, now, opens string }{
		{"by day, before", "08:00-17:00", "", "2026-03-01 07:59:59 +00", "2026-03-01 08:00:00 +00"},
		{"by day, begins", "08:00-17:00", "UTC", "2026-03-01 08:00:00 +00", "="},
		{"by day, ends", "08:00-17:00", "UTC", "2026-03-01 16:59:59 +00", "="},
		{"by day, over", "08:00-17:00", "UTC", "2026-03-01 17:00:00 +00", "2026-03-02 08:00:00 +00"},
		{"over midnight, evening", "22:00-06:00", prague, "2026-01-10 21:59:59 +01", "2026-01-10 22:00:00 +01"},
		{"over midnight, midnight", "22:00-06:00", prague, "2026-01-11 00:00:00 +01", "="},
		{"over midnight, morning", "22:00-06:00", prague, "2026-01-11 05:59:59 +01", "="},
		{"over midnight, over", "22:00-06:00", prague, "2026-01-11 06:00:00 +01", "2026-01-11 22:00:00 +01"},
		{"told in another zone", "22:00-06:00", prague, "2026-01-10 21:00:00 +00", "="},
		{"to 24:00", "20:00-24:00", "", "2026-01-10 23:59:59 +00", "="},
		{"to 24:00, over", "20:00-24:00", "", "2026-01-11 00:00:00 +00", "2026-01-11 20:00:00 +00"},
		{"to 00:00", "20:00-00:00", "", "2026-01-10 23:59:59 +00", "="},
		{"all day", "00:00-24:00", "", "2026-01-10 23:59:59 +00", "="},
		{"several", "12:00-13:00, 03:00-04:00", "", "2026-01-10 13:00:00 +00", "2026-01-11 03:00:00 +00"},
		{"several, the next of the day", "12:00-13:00,03:00-04:00", "", "2026-01-10 04:00:00 +00",
			"2026-01-10 12:00:00 +00"},

		// 29 March 2026: 02:00 +01 becomes 03:00 +02.
		{"Prague, spring, the hour that is not", "02:00-03:00", prague, "2026-03-29 01:59:59 +01",
			"2026-03-30 02:00:00 +02"},
		{"Prague, spring, into the jump", "02:30-04:00", prague, "2026-03-29 01:00:00 +01", "2026-03-29 03:00:00 +02"},
		{"Prague, spring, night", "22:00-06:00", prague, "2026-03-29 05:59:59 +02", "="},
		{"Prague, spring, night over", "22:00-06:00", prague, "2026-03-29 06:00:00 +02", "2026-03-29 22:00:00 +02"},
		{"Prague, spring, a day of 23 hours", "12:00-13:00", prague, "2026-03-28 13:00:00 +01",
			"2026-03-29 12:00:00 +02"},
		// 25 October 2026: 03:00 +02 becomes 02:00 +01.
		{"Prague, autumn, first time", "02:00-03:00", prague, "2026-10-25 02:59:59 +02", "="},
		{"Prague, autumn, second time", "02:00-03:00", prague, "2026-10-25 02:00:00 +01", "="},
		{"Prague, autumn, over", "02:00-03:00", prague, "2026-10-25 03:00:00 +01", "2026-10-26 02:00:00 +01"},
		{"Prague, autumn, between the two", "02:00-02:30", prague, "2026-10-25 02:30:00 +02",
			"2026-10-25 02:00:00 +01"},
		{"Prague, autumn, a day of 25 hours", "12:00-13:00", prague, "2026-10-24 13:00:00 +02",
			"2026-10-25 12:00:00 +01"},

		// 8 March 2026: 02:00 -05 becomes 03:00 -04.
		{"New York, spring, the hour that is not", "02:15-02:45", newYork, "2026-03-08 01:00:00 -05",
			"2026-03-09 02:15:00 -04"},
		{"New York, spring, into the jump", "01:00-03:30", newYork, "2026-03-08 03:29:59 -04", "="},
		// 1 November 2026: 02:00 -04 becomes 01:00 -05.
		{"New York, autumn, first time", "01:00-02:00", newYork, "2026-11-01 01:30:00 -04", "="},
		{"New York, autumn, second time", "01:00-02:00", newYork, "2026-11-01 01:59:59 -05", "="},
		{"New York, autumn, over", "01:00-02:00", newYork, "2026-11-01 02:00:00 -05", "2026-11-02 01:00:00 -05"},
		{"fractions of a second", "08:00-17:00", "", "2026-03-01 07:59:59.75 +00", "2026-03-01 08:00:00 +00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := politeness.ParseWindow(tt.hours, tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			now, want := parseTime(t, tt.now), tt.opens
			if open := w.IsOpen(now); open != (want == "=") {
				t.Errorf("open: %t", open)
			}
			if want == "=" {
				want = tt.now
			}
			if got := w.NextOpen(now); !got.Equal(parseTime(t, want)) {
				t.Errorf("opens %v, want %v", got.In(now.Location()), want)
			}
		})
	}
}

// TestWindowByTheMinute compares NextOpen with a search by minutes, on the days around both clock
// changes, in four zones. In one of them the clocks change by half an hour.
func TestWindowByTheMinute(t *testing.T) {
	for _, zone := range []string{"Europe/Prague", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"} {
		for _, text := range []string{"22:00-06:00", "02:00-03:00", "01:45-02:15", "00:00-00:01,12:00-24:00"} {
			w, err := politeness.ParseWindow(text, zone)
			if err != nil {
				t.Fatal(err)
			}
			for _, day := range []string{"2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25",
				"2026-11-01", "2026-02-15", "2026-03-22"} {
				checkEachMinute(t, w, parseTime(t, day+" 00:00:00 +00").Add(-24*time.Hour))
			}
		}
	}
}

// checkEachMinute checks the three days from begin on.
func checkEachMinute(t *testing.T, w politeness.Window, begin time.Time) {
	t.Helper()
	open := time.Time{} // the first open minute at or after the current one; the loop runs backwards
	for i := 5 * 24 * 60; i >= 0; i-- {
		now := begin.Add(time.Duration(i) * time.Minute)
		if w.IsOpen(now) {
			open = now
		}
		if i <= 3*24*60 && !w.NextOpen(now).Equal(open) {
			t.Fatalf("%v at %v: opens %v, want %v", w, now, w.NextOpen(now), open)
		}
	}
}

func TestParseWindowRefuses(t *testing.T) {
	for _, tt := range []struct{ hours, zone string }{
		{"", ""}, {"08:00", ""}, {"08:00-08:00", ""}, {"24:00-06:00", ""}, {"24:00-00:00", ""}, {"08:00-24:01", ""},
		{"08:60-09:00", ""}, {"8:00-9:00", ""}, {"08:00-09:00,", ""}, {"0800-0900", ""}, {"08.00-09.00", ""},
		{"-1:00-02:00", ""}, {"+1:00-02:00", ""}, {"08:00-09:00-10:00", ""}, {"25:00-26:00", ""},
		{"08:00-09:00", "Prague"}, {"08:00-09:00", "../etc/passwd"}, {"08:00-09:00", "Local"},
	} {
		if w, err := politeness.ParseWindow(tt.hours, tt.zone); err == nil {
			t.Errorf("%q in %q is read as %v", tt.hours, tt.zone, w)
		}
	}
}

func TestZeroWindowIsAlwaysOpen(t *testing.T) {
	var w politeness.Window
	if !w.IsOpen(noon) || !w.NextOpen(noon).Equal(noon) || !w.IsZero() || w.String() != "always" {
		t.Errorf("%v", w)
	}
}

func FuzzParseWindow(f *testing.F) {
	for _, s := range []string{"22:00-06:00", "00:00-24:00", "01:00-02:00,03:00-04:00", "02:30-02:31"} {
		f.Add(s, "Europe/Prague", int64(1774746000))
	}
	f.Fuzz(func(t *testing.T, text, zone string, unix int64) {
		w, err := politeness.ParseWindow(text, zone)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<34), 0)
		opens := w.NextOpen(now)
		if opens.Before(now) || !w.IsOpen(opens) || opens.Sub(now) > 73*time.Hour {
			t.Errorf("%v: opens at %v, before %v", w, opens, now)
		}
	})
}
