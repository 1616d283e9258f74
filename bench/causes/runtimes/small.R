t<-0; for(r in 1:40){ l<-lapply(1:60000,function(i) c(i,r)); t<-t+length(l)}; cat(t,"\n")
