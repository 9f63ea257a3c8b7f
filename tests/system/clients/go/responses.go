package main

import "net/http"

// responseEmitter emits a line for every response. The client decodes any content type, so tests read it here.
type responseEmitter struct{ next http.RoundTripper }

func emitResponses(next http.RoundTripper) http.RoundTripper { return responseEmitter{next} }

func (e responseEmitter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(request)
	if err == nil {
		emit("response", map[string]any{
			"method": request.Method, "path": request.URL.Path, "query": request.URL.RawQuery, "status": response.StatusCode,
			"sent": request.Header.Get("Content-Type"), "type": response.Header.Get("Content-Type"), "protocol": response.Proto,
		})
	}
	return response, err
}
