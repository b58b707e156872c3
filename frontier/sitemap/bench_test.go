package sitemap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// BenchmarkRead reads 10,000 entries with all four fields in three ways: with this package; with
// encoding/xml, decoding the same entries; and with encoding/xml, reading the raw tokens only.
func BenchmarkRead(b *testing.B) {
	const entries = 10_000
	file, err := io.ReadAll(&sitemapGenerator{entries: entries})
	if err != nil {
		b.Fatal(err)
	}
	base := mustParseURL(b, sitemapURL)
	for _, reader := range []struct {
		name string
		read func([]byte, func(Entry) error) error
	}{
		{"decorum", func(file []byte, yield func(Entry) error) error {
			return Read(bytes.NewReader(file), base, Options{}, yield)
		}},
		{"encoding-xml", func(file []byte, yield func(Entry) error) error { return readXML(file, base, yield) }},
		{"encoding-xml-raw-tokens", func(file []byte, yield func(Entry) error) error {
			return readRawTokens(file, yield)
		}},
	} {
		b.Run(reader.name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if err := reader.read(file, func(Entry) error { n++; return nil }); err != nil || n != entries {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
		})
	}
}

// readXML reads a urlset with encoding/xml, one entry at a time.
func readXML(file []byte, base decorum.URL, yield func(Entry) error) error {
	d := xml.NewDecoder(bytes.NewReader(file))
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local != "url" {
			continue
		}
		var e struct {
			Loc        string `xml:"loc"`
			LastMod    string `xml:"lastmod"`
			ChangeFreq string `xml:"changefreq"`
			Priority   string `xml:"priority"`
		}
		if err := d.DecodeElement(&e, &start); err != nil {
			return err
		}
		u, err := base.Resolve(e.Loc)
		if err != nil {
			return err
		}
		lastMod, _ := time.Parse(time.RFC3339, e.LastMod)
		priority, _ := strconv.ParseFloat(e.Priority, 64)
		if err := yield(Entry{URL: u, LastMod: lastMod, ChangeFreq: e.ChangeFreq, Priority: priority}); err != nil {
			return err
		}
	}
}

// readRawTokens reads the raw tokens of a file with encoding/xml, and counts entries.
func readRawTokens(file []byte, yield func(Entry) error) error {
	d := xml.NewDecoder(bytes.NewReader(file))
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if end, ok := t.(xml.EndElement); ok && end.Name.Local == "url" {
			if err := yield(Entry{}); err != nil {
				return err
			}
		}
	}
}
