// Usage: kubernetes ETCD_FOLDER ETCD_PORT PEER_PORT OPTIONS_OF_KUBE_APISERVER
package main

import (
	"log"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	store := embed.NewConfig()
	store.Dir, store.LogLevel = os.Args[1], "error"
	clients, peers := url.URL{Scheme: "http", Host: "127.0.0.1:" + os.Args[2]}, url.URL{Scheme: "http", Host: "127.0.0.1:" + os.Args[3]}
	store.ListenClientUrls, store.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	store.ListenPeerUrls, store.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	store.InitialCluster = store.InitialClusterFromName(store.Name)
	running, err := embed.StartEtcd(store)
	if err != nil {
		log.Fatal(err)
	}
	<-running.Server.ReadyNotify()
	os.Args = append([]string{"kube-apiserver", "--etcd-servers=" + clients.String()}, os.Args[4:]...)
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
