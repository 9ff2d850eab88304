"""This broker as one of a cluster: its replicas, their fetchers, the office of controller.

cluster_keys.py         the keys of the cluster at a running broker: in ZooKeeper, in its data
                        directory, in its proofs
cluster_membership.py   a broker in its cluster: its registration, its topics and settings in
                        ZooKeeper, its controller
cluster_view.py         a broker's view of the whole cluster: its brokers, and who leads each
                        partition
controller_requests.py  what brokers and clients ask of the controller
controller_thread.py    this broker's controller: the election, and its work while it is in
                        office
followed.py             what a broker follows in ZooKeeper while it runs: settings, rules, keys,
                        and ACLs of its nodes
live_brokers.py         the live brokers as the controller told last, connections to them,
                        requests to the controller
peer_watch.py           whether other brokers are there, found sooner than their sessions with
                        ZooKeeper end; their clocks
push_sender.py          the controller's pushes to brokers: a thread for each broker, so that
                        none waits for another
replica_fetcher.py      a thread that copies from one leader the partitions that it leads and
                        this broker follows; the threads that wait for disks
replica_manager.py      the replicas of one broker: their copies and records, and the changes they
                        propose
replica_orders.py       orders of the controller, carried out on the logs of this broker
replica_table.py        which replicas are on this broker, and what a controller has told it of
                        all partitions
shutdown.py             a broker's orderly stop: who asked for it, its steps, and what they wait
                        for
state_change_log.py     the state-change log: the controller's decisions, and how this broker
                        carried them out
storage_faults.py       replicas whose disk fails reads or writes, or damages messages: another
                        leads, they are mended
throttle.py             the throttle of reassignments: how fast a broker copies to replicas that
                        are being added
"""
