package project

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/storage"
)

// The tables in this file say which values a field may have. The checks of a project and the JSON
// Schema of the project file both use them.

// A choiceField is a field, or a list, whose values are a few words.
type choiceField struct {
	path    string
	choices []string
}

// choiceFields lists the fields of a few words each.
var choiceFields = []choiceField{
	{"agent.signature.agent_form", []string{"dictionary", "string"}},
	{"scope.within", []string{"path", "origin", "host", "domain", "any"}},
	{"scope.seed_redirects", []string{"origin", "host", "domain", "any"}},
	{"robots.dialect", []string{"google", "yandex", "google-oss"}},
	{"robots.purpose", []string{"search", "ai-input", "ai-train", "archive"}},
	{"fetch.connections.post_quantum", []string{"auto", "always", "never"}},
	{"revisit.mode", []string{"none", "interval", "adaptive"}},
	{"store.redis.durability", []string{"replica", "disk", "none"}},
	{"output.mode", allowedFileModes},
}

// checkChoices checks the fields of choiceFields.
func checkChoices(p *Project, found *problemCollector) {
	for _, f := range choiceFields {
		if v := p.fieldAt(f.path); v.Kind() == reflect.String {
			f.checkValue(f.path, v.String(), found)
		} else {
			for i := range v.Len() {
				f.checkValue(indexedFieldName(f.path, i), v.Index(i).String(), found)
			}
		}
	}
}

// checkValue checks one value; path is that of the field or of the item of a list.
func (f choiceField) checkValue(path, value string, found *problemCollector) {
	if !slices.Contains(f.choices, value) {
		found.add(path, "%q is not one of %s%s", value, strings.Join(f.choices, ", "), DidYouMean(value, f.choices))
	}
}

// A numberField is a number or a size with a range. 0 stands for "no limit" or for the default where
// the range includes it.
type numberField struct {
	path     string
	min, max float64
}

// numberFields lists the fields with a range.
var numberFields = []numberField{
	{"scope.max_depth", 0, 1e6},
	{"scope.max_pages_per_host", 0, math.MaxInt32},
	{"scope.max_url_length", 16, 1 << 16},
	{"scope.max_params", 0, 1e6},
	{"scope.max_path_depth", 0, 1e6},
	{"scope.max_repeat", 0, 1e6},
	{"scope.max_redirects", 0, 1e6},
	{"scope.max_duplicate_links", 0, math.MaxInt32},
	{"scope.max_duplicates_per_pattern", 0, math.MaxInt32},
	{"scope.max_urls_per_pattern", 0, math.MaxInt32},
	{"scope.max_urls_per_host", 0, math.MaxInt32},
	{"scope.max_hosts_per_domain", 0, math.MaxInt32},
	{"scope.max_hosts", 0, math.MaxInt32},
	{"discover.max_links", 1, 1e6},
	{"discover.max_sitemaps", 1, 1e6},
	{"discover.max_feeds", 0, math.MaxInt32},
	{"discover.max_sort_links", 0, math.MaxInt32},
	{"politeness.adaptive", 0, 1000},
	{"politeness.backoff.factor", 1, 100},
	{"politeness.concurrency", 1, 1000},
	{"limits.workers", 1, 10_000},
	{"limits.pages", 0, math.MaxInt32},
	{"limits.requests_per_second", 0, 1e6},
	{"fetch.max_body", 0, 1 << 40},
	{"fetch.max_sitemap_body", 1, 1 << 40},
	{"fetch.max_request_body", 1, storage.MaxBodyBytes},
	{"fetch.max_header", 1 << 10, 16 << 20},
	{"fetch.connections.tls_sessions", 0, 1e6},
	{"output.warc_max_size", minOutputFileSize, maxOutputFileSize},
	{"output.ledger_max_size", minOutputFileSize, maxOutputFileSize},
}

// checkNumberRanges checks the fields of numberFields.
func checkNumberRanges(p *Project, found *problemCollector) {
	for _, f := range numberFields {
		x := 0.0
		if v := p.fieldAt(f.path); v.CanInt() {
			x = float64(v.Int())
		} else {
			x = v.Float()
		}
		if !(x >= f.min && x <= f.max) { // also true for NaN
			found.add(f.path, "%v is out of range: expected %v to %v", formatWithoutExponent(x),
				formatWithoutExponent(f.min), formatWithoutExponent(f.max))
		}
	}
}
