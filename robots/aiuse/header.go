package aiuse

import (
	"net/http"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// HeaderSignals returns what the header of an answer asks of the use of its
// content by Content-Usage, Content-Signal and tdm-reservation. Each field line
// is a statement: where they disagree the stricter one stays. Of a field that is
// not well formed counts what can be read.
func HeaderSignals(h http.Header) Signals {
	var found Signals
	for _, name := range []string{"Content-Usage", "Content-Signal"} {
		var strictest strictestSignals
		for _, list := range h.Values(name) {
			strictest.add(signalsOfList(list, Signal{Source: InHeader, Field: strings.ToLower(name)})...)
		}
		found = append(found, strictest.signals...)
	}
	var reserved strictestSignals
	for _, value := range h.Values(tdmReservationField) {
		if s, ok := ParseTDMReservation(InHeader, value, h.Get("tdm-policy")); ok {
			reserved.add(s)
		}
	}
	return append(found, reserved.signals...)
}

// signalsOfList reads "category=y, category=n", each as the signal template.
func signalsOfList(list string, template Signal) Signals {
	var all Signals
	for _, p := range syntax.ParsePreferences(list) {
		template.Category, template.Preference = p.Category, preferencesByStrictness[p.Value]
		all = append(all, template)
	}
	return all
}
