"""This broker as one of a cluster: its replicas, their fetchers, the office of controller.

clocks.py               compares this broker's clock with those of the other live brokers
cluster_keys.py         the keys of the cluster at a running broker: in ZooKeeper, in its data
                        directory, in its proofs
cluster_membership.py   a broker in its cluster: its registration, its topics and settings in
                        ZooKeeper, its controller
cluster_view.py         a broker's view of the whole cluster: its brokers, and who leads each
                        partition
controller_requests.py  what brokers and clients ask of the controller
controller_thread.py    this broker's controller: the election, and its work while it is in
                        office
disk_threads.py         threads that wait for disks
followed.py             what a broker follows in ZooKeeper while it runs
isr_proposals.py        changes of in-sync replicas that this broker, as their leader, proposes
                        to the controller
live_brokers.py         the live brokers as the controller told last, connections to them,
                        requests to the controller
peer_watch.py           whether other brokers are there, found sooner than their sessions with
                        ZooKeeper end
push_sender.py          the controller's pushes to brokers: a thread for each broker, so that
                        none waits for another
replica_fetcher.py      a thread that copies from one leader the partitions that it leads and
                        this broker follows
replica_manager.py      the replicas of one broker: all that carries out orders, copies, and
                        proposes changes
replica_orders.py       orders of the controller, carried out on the logs of this broker
replica_records.py      the records beside the logs of replicas, and replicas that the registry
                        does not know
replica_table.py        which replicas are on this broker, and what a controller has told it of
                        all partitions
settings.py             applies settings from ZooKeeper while the broker runs: its own, and
                        those of topics and users
shutdown.py             a broker's orderly stop: who asked for it, its steps, and what they wait
                        for
state_change_log.py     the state-change log: the controller's decisions, and how this broker
                        carried them out
storage_faults.py       replicas whose disk fails reads or writes, or damages messages: another
                        leads, they are mended
throttle.py             the throttle of reassignments: how fast a broker copies to replicas that
                        are being added
"""
