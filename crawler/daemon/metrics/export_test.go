package metrics

import "github.com/prometheus/client_golang/prometheus"

// Descriptions returns the descriptions of all metrics, with or without series.
func (m *Metrics) Descriptions() (list []string) {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		m.registry.Describe(ch)
	}()
	for d := range ch {
		list = append(list, d.String())
	}
	return list
}
